"""A bounded loop: work, verify, and while that fails repair and verify again, `max_attempts` times at most.

Work and repairs are done by workers, each with a receipt of its own. Nodes that the loop came to an end without are
`unneeded` after a success and `skipped` after a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dispatch import WorkerEnd, dispatch
from ledger import Ledger
from options import LoopOptions
from shell import Ended, Shell

VERIFY_S = 120
OUTPUT_BYTES = 8 * 1024
REPAIR = """\
The work was to be: {prompt}

It was verified with this command, which exited {exit_code}:

{command}

It printed:

{output}

Mend what is wrong."""


@dataclass
class Node:
    """One step of the loop. `session` is that of the worker who did it."""

    name: str
    state: str = "skipped"
    session: str | None = None


def run_loop(options: LoopOptions, ledger: Ledger, shell: Shell, prompt: str) -> str:
    """Run the loop to its end and return why it ended: `resolved`, or one of the failures that start with `loop_`."""
    ledger.add("loop_start", verify=options.verify, max_attempts=options.max_attempts)
    loop = _Loop(ledger, options)
    reason = loop.run(
        lambda role, text: dispatch(ledger, text, role),
        lambda: shell.run(options.verify, VERIFY_S, OUTPUT_BYTES),
        prompt,
    )
    loop.tell(reason)
    return reason


class _Loop:
    def __init__(self, ledger: Ledger, options: LoopOptions) -> None:
        self._ledger, self._options = ledger, options
        names = ["work", "verify.1"]
        for number in range(2, options.max_attempts + 1):
            names += [f"repair.{number - 1}", f"verify.{number}"]
        self._nodes = {name: Node(name) for name in names}

    def run(self, work: Callable[[str, str], WorkerEnd], verify: Callable[[], Ended], prompt: str) -> str:
        if not self._worked("work", work("worker", prompt)):
            return "loop_not_reached"
        for attempt in range(1, self._options.max_attempts + 1):
            ended = verify()
            passed = ended.exit_code == 0 and not ended.timed_out
            self._nodes[f"verify.{attempt}"].state = "done" if passed else "failed"
            self._ledger.add("verification", attempt=attempt, exit_code=ended.exit_code, text=ended.output)
            if passed:
                return "resolved"
            if attempt == self._options.max_attempts:
                return "loop_bound_exhausted"
            text = REPAIR.format(
                prompt=prompt, exit_code=ended.exit_code, command=self._options.verify, output=ended.output
            )
            if not self._worked(f"repair.{attempt}", work("repair", text)):
                return "loop_step_failed"
        raise AssertionError("the last attempt returns")

    def _worked(self, name: str, end: WorkerEnd) -> bool:
        self._nodes[name].session = end.session
        self._nodes[name].state = "done" if end.exit_code == 0 else "failed"
        return end.exit_code == 0

    def tell(self, reason: str) -> None:
        """Write how it ended, node by node."""
        for node in self._nodes.values():
            if node.state == "skipped" and reason == "resolved":
                node.state = "unneeded"
        self._ledger.add("loop", reason=reason, nodes=[vars(node) for node in self._nodes.values()])
