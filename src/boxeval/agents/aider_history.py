"""aider: what each exchange took, out of its chat history, and the answers, out of its log of exchanges. Pure.

Every line of an answer begins with `ASSISTANT `, so nothing in an answer can be taken for anything else.
"""

from __future__ import annotations

import re

from boxeval.agents.stream import Calls, Output, Reading, StreamFault, exit_fault, faulty, message_of, text_of
from boxeval.spec.agent_record import ClaimedUsage, TurnEnd
from boxeval.spec.base import SAFE

SAID = "ASSISTANT "
_TOKENS = re.compile(r"^> Tokens: (\S+) sent,(?: \S+ cache (?:write|hit),)* (\S+) received\.")


def read(output: Output) -> Reading:
    """One turn: an answer, exit 0. aider tells of no tool calls: it edits by what the model writes."""
    try:
        lines = text_of(output).split("\n")
    except StreamFault as fault:
        return faulty(fault, Calls())
    starts = [number for number, line in enumerate(lines) if line.startswith("LLM RESPONSE ")]
    end, reason = TurnEnd.COMPLETED, None
    if ended := exit_fault(output):
        end, reason = TurnEnd.FAILED, ended
    elif not starts:
        end, reason = TurnEnd.INCOMPLETE, "the agent tells of no answer"
    said = lines[starts[-1] + 1 :] if starts else []
    words = "\n".join(line.removeprefix(SAID) for line in said if line.startswith(SAID))
    message, message_reason = message_of(words.strip())
    usage, usage_reason = _usage(lines)
    return Reading(end, reason, message, message_reason, None, usage, usage_reason)


def _usage(lines: list[str]) -> tuple[ClaimedUsage | None, str | None]:
    """The sum of all exchanges, if aider wrote every number out: it rounds large ones, which are no count then."""
    sent, received, count = 0, 0, 0
    for line in lines:
        if found := _TOKENS.match(line):
            if not all(re.fullmatch(r"[0-9]{1,15}", number) for number in found.groups()):
                return None, "the agent tells no exact usage"
            sent, received, count = sent + int(found[1]), received + int(found[2]), count + 1
    if not count or max(sent, received) > SAFE:
        return None, "the agent tells no usage"
    return ClaimedUsage(input=sent, output=received), None
