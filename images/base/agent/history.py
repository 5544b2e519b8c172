"""What the model gets to see of a session: its messages, rebuilt from the ledger, made shorter by compaction.

The ledger keeps everything; only the messages that are sent become fewer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]
BYTES_A_TOKEN = 4
ASK = """\
The conversation is getting too long. Write a summary that another agent could go on from: the task, what was
found out, exact names and numbers, what is done and what is still to do. Answer with the summary alone."""
SUMMARY = "This is a summary of the conversation so far:\n\n{summary}"


def tokens(messages: list[Message]) -> int:
    """A rough size, good enough to decide when there is too much."""
    return len(json.dumps(messages).encode()) // BYTES_A_TOKEN


def compacted(system: Message, summary: str) -> list[Message]:
    """What is left of a conversation after compaction."""
    return [system, {"role": "user", "content": SUMMARY.format(summary=summary)}]


def restored(entries: Iterable[Message], system: Message) -> list[Message]:
    """The messages of the last main session, and of the sessions that it went on from."""
    messages: list[Message] = [system]
    for entry in entries:
        if not str(entry.get("session")).startswith("main."):
            continue
        kind = entry.get("type")
        if kind == "session" and not entry.get("continues"):
            messages = [system]
        elif kind == "compaction":
            messages = compacted(system, entry["summary"])
        elif kind == "user":
            messages.append({"role": "user", "content": entry["text"]})
        elif kind == "assistant":
            messages.append(_assistant(entry))
        elif kind == "tool":
            messages.append({"role": "tool", "tool_call_id": entry["call_id"], "content": entry["text"]})
    return _closed(messages)


def _assistant(entry: Message) -> Message:
    message: Message = {"role": "assistant", "content": entry["text"]}
    if entry["calls"]:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in entry["calls"]
        ]
    return message


def _closed(messages: list[Message]) -> list[Message]:
    """A session that was killed has calls without a result, which no model would accept: give them one."""
    answered = {message.get("tool_call_id") for message in messages}
    whole: list[Message] = []
    for message in messages:
        whole.append(message)
        for call in message.get("tool_calls", ()):
            if call["id"] not in answered:
                whole.append({"role": "tool", "tool_call_id": call["id"], "content": "error: interrupted"})
    return whole
