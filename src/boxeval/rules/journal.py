"""Reads the reference agent's session ledger (docs/reference-agent.md). Pure; the bytes are hostile.

What the ledger sums up about itself is counted again from its single entries wherever that can be done.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from boxeval.spec.base import SAFE
from boxeval.spec.journal import AgentReceipt, Journal, LoopRun

MAX_RECEIPTS = 256
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_WORD = re.compile(r"[\w-]+")
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
_REPAIR = "repair"

Entry = dict[str, Any]


def read_journal(data: bytes) -> Journal:
    """Everything that metrics need of a ledger. Lines that are no entry are counted, never an error."""
    lines, torn = _lines(data)
    entries = [entry for entry, _ in lines]
    receipts = tuple(_receipts(lines))[:MAX_RECEIPTS]
    begun = [entry for entry in entries if entry["type"] == "session"]
    sealed = {receipt.session for receipt in receipts}
    tools = [entry for entry in entries if entry["type"] == "tool"]
    compactions = [entry for entry in entries if entry["type"] == "compaction"]
    return Journal(
        sha256=hashlib.sha256(data).hexdigest(),
        format_version=_whole(begun[0].get("format")) if begun else None,
        torn=torn,
        sessions=len({entry["session"] for entry in begun}),
        unsealed=len({entry["session"] for entry in begun} - sealed),
        calls_unmatched=sum(_unmatched(thread) for thread in _by(entries, _session)),
        messages_between=sum(_between(thread) for thread in _by(entries, _session)),
        tools_failed=sum(entry.get("error") is True for entry in tools),
        tools_blocked=sum(entry.get("blocked") is True for entry in tools),
        compactions=len(compactions),
        summaries=sum(bool(_text(entry, "summary").strip()) for entry in compactions),
        answered_from_before=_answered(entries),
        receipts=receipts,
        loops=tuple(_loops(entries, receipts))[:MAX_RECEIPTS],
    )


def _lines(data: bytes) -> tuple[list[tuple[Entry, bytes]], int]:
    found, torn = [], 0
    for line in data.splitlines(keepends=True):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            torn += 1
            continue
        if isinstance(entry, dict) and isinstance(entry.get("type"), str) and _name(entry.get("session")):
            found.append((entry, line))
        else:
            torn += 1
    return found, torn


def _receipts(lines: list[tuple[Entry, bytes]]) -> Iterator[AgentReceipt]:
    """One for each session that has any; a second one, or a line after it, makes it invalid."""
    for thread in _by(lines, lambda line: str(line[0]["session"])):
        sealing = [number for number, (entry, _) in enumerate(thread) if entry["type"] == "receipt"]
        if not sealing:
            continue
        receipt = thread[sealing[0]][0]
        role, reason = _name(receipt.get("role")), _name(receipt.get("reason"))
        named = (
            role is not None and reason is not None and _name(receipt.get("parent"), absent=True) is not None
        )
        usage = receipt["usage"] if isinstance(receipt.get("usage"), dict) else {}
        code = _whole(receipt.get("exit"))
        yield AgentReceipt(
            session=receipt["session"],
            parent=_name(receipt.get("parent")),
            role=role or "unknown",
            reason=reason or "unknown",
            exit_code=code if code is not None and code <= 255 else None,
            claimed_input=_whole(usage.get("prompt_tokens")),
            claimed_output=_whole(usage.get("completion_tokens")),
            claimed_total=_whole(usage.get("total_tokens")),
            valid=named and sealing == [len(thread) - 1] and receipt.get("digest") == _digest(thread),
        )


def _digest(thread: list[tuple[Entry, bytes]]) -> str:
    """Over the lines of a session before its receipt, and the receipt without its digest."""
    digest = hashlib.sha256()
    for _, line in thread[:-1]:
        digest.update(line)
    receipt = {name: value for name, value in thread[-1][0].items() if name != "digest"}
    digest.update(json.dumps(receipt, sort_keys=True, separators=(",", ":")).encode())
    return digest.hexdigest()


def _unmatched(thread: list[Entry]) -> int:
    asked = Counter(name for entry in thread for name in _called(entry))
    told = Counter(str(entry.get("call_id")) for entry in thread if entry["type"] == "tool")
    return ((asked - told) + (told - asked)).total()


def _between(thread: list[Entry]) -> int:
    """Messages of the model that came while a call of an earlier one had no result yet."""
    waiting: set[str] = set()
    count = 0
    for entry in thread:
        if entry["type"] == "tool":
            waiting.discard(str(entry.get("call_id")))
        elif entry["type"] == "assistant":
            count += bool(waiting)
            waiting.update(_called(entry))
    return count


def _called(entry: Entry) -> Iterator[str]:
    calls = entry.get("calls") if entry["type"] == "assistant" else None
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield str(call.get("id"))


def _answered(entries: list[Entry]) -> bool | None:
    """For every conversation with a compaction: does its last answer name a fact that was told only before?"""
    answers = []
    for thread in _by(
        entries, lambda entry: "main" if _session(entry).startswith("main.") else _session(entry)
    ):
        places = [number for number, entry in enumerate(thread) if entry["type"] == "compaction"]
        if not places:
            continue
        final = [entry for entry in thread if entry["type"] == "assistant" and not entry.get("calls")]
        before, after = _facts(thread[: places[-1]]), _facts(thread[places[-1] :])
        named = set(_names(_text(final[-1], "text"))) if final else set()
        answers.append(bool(named & (before - after)))
    return all(answers) if answers else None


def _facts(thread: list[Entry]) -> set[str]:
    told = (entry for entry in thread if entry["type"] in ("user", "tool"))
    return {name for entry in told for name in _names(_text(entry, "text"))}


def _names(text: str) -> Iterator[str]:
    """Exact names: words of 6 to 64 characters with a letter and a digit, as ids and code words are.

    In one pass: a pattern that looks ahead for both takes a time that grows with the square of a long word.
    """
    for word in _WORD.findall(text):
        if 6 <= len(word) <= 64 and _DIGIT.search(word) and _LETTER.search(word):
            yield word


def _loops(entries: list[Entry], receipts: Iterable[AgentReceipt]) -> Iterator[LoopRun]:
    for thread in _by(entries, _session):
        begun = [entry for entry in thread if entry["type"] == "loop_start"]
        if not begun:
            continue
        session = _session(thread[0])
        checks = [entry for entry in thread if entry["type"] == "verification"]
        ends = [entry for entry in thread if entry["type"] == "loop"]
        repairs = [
            entry
            for entry in thread
            if entry["type"] == "dispatch" and str(entry.get("worker")).startswith(f"{_REPAIR}.")
        ]
        sealed = [r for r in receipts if r.role == _REPAIR and r.parent == session and r.valid]
        states = Counter(_states(ends[-1]) if ends else ())
        yield LoopRun(
            session=session,
            max_attempts=_whole(begun[0].get("max_attempts")) or 0,
            attempts=len(checks),
            repairs=len(repairs),
            repairs_sealed=len(sealed),
            solved=bool(checks) and checks[-1].get("exit_code") == 0,
            reason=_name(ends[-1].get("reason")) if ends else None,
            skipped=states["skipped"],
            unneeded=states["unneeded"],
        )


def _states(end: Entry) -> Iterator[str]:
    nodes = end.get("nodes")
    for node in nodes if isinstance(nodes, list) else ():
        if isinstance(node, dict):
            yield str(node.get("state"))


def _by(items: Iterable[Any], key: Any) -> list[list[Any]]:
    """Items in groups, both in the order in which they came."""
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _session(entry: Entry) -> str:
    return str(entry["session"])


def _text(entry: Entry, name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _name(value: object, absent: bool = False) -> str | None:
    if value is None and absent:
        return ""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def _whole(value: object) -> int | None:
    """A whole number that a receipt can carry."""
    return value if type(value) is int and 0 <= value <= SAFE else None
