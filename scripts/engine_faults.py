"""Every fault at every request of a small run (`make faults`): each must end sealed, void or refused, in bounded time.

    engine_faults.py [--faults CUT,HALF] [--from N] [--to N]

Prints one line a fault, and last how many runs ended how. Exit 1 if one did not end as it must.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from boxeval.sandbox.engine import connect
from boxeval.sandbox.images import build_all
from engine_proxy import Fault
from engine_runs import forget, settings_in
from faulty_runs import Ended, at, faulty_run


def kind_of(ended: Ended) -> str:
    """How a run ended, in one word."""
    if ended.refused is not None:
        return "refused"
    void = [told for told in ended.kinds.values() if told.startswith("not_assessed")]
    return "void" if void else "sealed" if len(ended.kinds) == 2 else "incomplete"


def main() -> int:
    """Run the grid."""
    options = argparse.ArgumentParser()
    options.add_argument("--faults", default=",".join(Fault.__members__))
    options.add_argument("--from", dest="first", type=int, default=0)
    options.add_argument("--to", dest="last", type=int)
    chosen = options.parse_args()
    faults = [Fault[name] for name in chosen.faults.split(",")]
    ends: Counter[str] = Counter()
    wrong, longest_s, began = 0, 0.0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="boxeval-faults-") as place:
        home = Path(place)
        settings = settings_in(home / "home", home / "cache")
        try:
            build_all(connect(), note=print)
            calls = faulty_run(home / "suite", settings, lambda _: None).calls
            for call in calls[chosen.first : chosen.last]:
                for fault in faults:
                    ended = faulty_run(home / "suite", settings, at(call.number, fault))
                    ends[kind_of(ended)] += 1
                    longest_s = max(longest_s, ended.took_s)
                    wrong += bool(ended.wrong)
                    print(
                        f"{'WRONG ' if ended.wrong else ''}{call.number} {call.name} {fault.name}: {kind_of(ended)}"
                        f" {ended.took_s:.1f} s {ended.refused or ended.kinds} {ended.wrong or ''}",
                        flush=True,
                    )
        finally:
            forget(settings)
    print(
        f"{ends.total()} runs, each with one fault at one of {len(calls)} requests: "
        f"{', '.join(f'{n} {kind}' for kind, n in sorted(ends.items()))}; {wrong} wrong"
        f"{'' if wrong else f', 95 % bound {3 / ends.total():.1e}'}; "
        f"longest {longest_s:.1f} s; {time.monotonic() - began:.0f} s in all"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
