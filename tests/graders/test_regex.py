"""`boxeval.regex`: ECMAScript, multiline always, bounded (contract G8)."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from boxeval.graders.examiner import WALL_S, Examiner
from grader_fixtures import Grades, check

CATASTROPHE = "(a+)+$"
VICTIM = b"a" * 40 + b"!"


@pytest.mark.contract("G8")
@pytest.mark.parametrize(
    ("pattern", "flags", "text", "matches"),
    [
        ("^b$", "", "a\nb\nc", True),
        ("^b$", "", "a\rb\rc", True),
        ("^b$", "", "a\u2028b\u2029c", True),
        ("^b$", "", "a\u0085b", False),  # a line end for Python and Unicode, not for ECMAScript
        ("a.b", "", "a\nb", False),
        ("a.b", "", "a\u2028b", False),
        ("a.b", "s", "a\nb", True),
        ("HELLO", "i", "say hello", True),
        ("HELLO", "", "say hello", False),
        (r"\d", "", "٣", False),  # an Arabic digit three
        (r"^\w$", "", "é", False),
        (r"é\b", "", "é ", False),
        (r"^.$", "", "😀", False),
        (r"^.$", "u", "😀", True),
        (r"\p{Lu}", "u", "É", True),
        (r"(?<=\$)\d+", "", "cost: $42", True),
        (r"(a)\1", "", "aa", True),
        (r"^$", "", "x", False),
        (r"\0", "", "a\0b", True),
        (r"^\uFEFF", "", "\ufeffx", True),
    ],
)
def test_patterns_are_ecmascript(grades: Grades, pattern: str, flags: str, text: str, matches: bool) -> None:
    assert grades(text, "regex", pattern=pattern, flags=flags) == ("passed" if matches else "failed")
    negated = grades(text, "regex", pattern=pattern, flags=flags, negate=True)
    assert negated == ("failed" if matches else "passed")


@pytest.mark.contract("G2", "G8")
@pytest.mark.parametrize(
    ("pattern", "flags"), [("(", ""), ("[b-a]", ""), (r"\p{No}{", "u"), ("(?<n>a)(?<n>b)", "")]
)
def test_a_bad_pattern_does_not_compile(grades: Grades, pattern: str, flags: str) -> None:
    [(path, said)] = grades.faults("regex", pattern=pattern, flags=flags)
    assert path == ("pattern",)
    assert "egular expression" in said


def test_a_failure_says_what_was_expected_and_received(grades: Grades) -> None:
    verdict = grades.verdict("no number here", "regex", pattern=r"\d+")
    assert verdict.reason == "the pattern does not match"
    assert verdict.expected == r"a match of /\d+/m"
    assert verdict.received == "'no number here'"
    long = grades.verdict("x" * 10_000, "regex", pattern="y")
    assert long.received is not None and len(long.received) == 200


@pytest.mark.contract("G8")
@pytest.mark.parametrize(
    ("grader", "configuration", "text"),
    [
        ("regex", {"pattern": CATASTROPHE}, VICTIM),
        ("schema", {"schema": {"pattern": CATASTROPHE}}, b'"' + VICTIM + b'"'),
        ("schema", {"schema": {"patternProperties": {CATASTROPHE: {}}}}, b'{"' + VICTIM + b'": 1}'),
        ("json", {"contains": {"$regex": CATASTROPHE}}, b'["' + VICTIM + b'"]'),
    ],
    ids=["regex", "pattern", "patternProperties", "$regex"],
)
@pytest.mark.slow
def test_a_catastrophic_pattern_is_an_error_and_no_hang(
    grades: Grades, grader: str, configuration: dict[str, object], text: bytes
) -> None:
    """Known failure F3."""
    began = time.monotonic()
    verdict = grades.verdict(text, grader, **configuration)
    assert (verdict.status.value, verdict.limit) == ("error", "time")
    assert time.monotonic() - began < WALL_S
    assert grades("after", "regex", pattern="after") == "passed"


@pytest.mark.contract("G8")
def test_other_questions_go_on_and_cancelling_ends_the_hung_one() -> None:
    """Known failure F3: four at once, Ctrl-C works."""
    cancelled = threading.Event()
    with Examiner(cancelled.is_set) as examiner:
        hung: list[str] = []

        def hang() -> None:
            hung.append(examiner.grade(check("boxeval.regex", pattern=CATASTROPHE), VICTIM).status.value)

        threads = [threading.Thread(target=hang) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert examiner.grade(check("boxeval.regex", pattern="b"), b"abc").status.value == "passed"
        began = time.monotonic()
        cancelled.set()
        for thread in threads:
            thread.join(10)
        assert time.monotonic() - began < 5
        assert hung == ["error"] * 3


def test_a_child_that_dies_is_an_error_and_the_next_one_is_new(examiner: Examiner) -> None:
    assert examiner.grade(check("boxeval.regex", pattern="b"), b"b").status.value == "passed"
    child = examiner._idle[-1]
    child._process.kill()
    child._process.wait()
    verdict = examiner.grade(check("boxeval.regex", pattern="b"), b"b")
    assert verdict.status.value == "error"
    assert "was ended by signal 9" in (verdict.reason or "")
    assert examiner.grade(check("boxeval.regex", pattern="b"), b"b").status.value == "passed"


@pytest.mark.contract("G4")
@pytest.mark.parametrize("text", [b"\xfe", b"a\xff\xfeb", "wörd".encode("utf-16"), b"\xed\xa0\x80"])
def test_a_message_that_is_no_utf8_fails_and_says_where(grades: Grades, text: bytes) -> None:
    """Known failure F12: also a negated pattern does not pass."""
    for negate in (True, False):
        verdict = grades.verdict(text, "regex", pattern="q", negate=negate)
        assert verdict.status.value == "failed"
        assert "is not UTF-8" in (verdict.reason or "")


def test_a_message_of_many_bytes_is_read_whole(grades: Grades) -> None:
    """Known failure F12: characters of three bytes, split wherever a pipe splits."""
    assert grades("€" * 100_000, "regex", pattern="^€{100000}$", flags="u") == "passed"
    assert grades("x" * (8 * 1024 * 1024 - 1) + "y", "regex", pattern="y$") == "passed"


def test_a_message_of_any_bytes_has_a_verdict(grades: Grades) -> None:
    """Known failure F12: noise, NULs, and JSON behind a byte order mark."""
    noise = random.Random(12).randbytes(1024 * 1024)
    assert grades(noise, "regex", pattern="x", negate=True) == "failed"
    assert grades(noise, "output", validJson=True) == "failed"
    assert grades("a\0b", "regex", pattern="^a\\0b$") == "passed"
    assert grades('\ufeff{"a": 1}', "json", pointer="/a", equals=1) == "passed"


@pytest.mark.slow
def test_memory_stays_flat() -> None:
    """After a warm-up, 6000 more texts take no MiB; a kept script for each would take six."""

    def resident_kib(pid: int) -> int:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    asked = check("boxeval.regex", pattern="^b$")
    with Examiner() as examiner:
        for number in range(3000):
            examiner.grade(asked, f"x{number}".encode())
        [child] = examiner.processes
        before = resident_kib(child)
        for number in range(6000):
            examiner.grade(asked, f"y{number}".encode())
        assert examiner.processes == (child,)
        assert resident_kib(child) - before < 2048
