"""Inputs that the readers take, for a fuzzer to begin with: by the name of the target in `fuzz_targets`."""

from __future__ import annotations

import base64
import io
import json
import struct
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import tamper_cases as tampering
from boxeval.receipts.trust import TrustFile
from case_samples import CASE
from extension_samples import DESCRIBED
from suite_samples import RIGHT


def block(data: bytes) -> bytes:
    """As an engine wraps what a container prints."""
    return b"\1\0\0\0" + struct.pack(">I", len(data)) + data


def frame(kind: bytes, payload: bytes) -> bytes:
    """As shim and keeper frame what they say."""
    return kind + struct.pack(">I", len(payload)) + payload


def entry(**more: Any) -> bytes:
    told = {"path": base64.b64encode(b"d/a").decode(), "kind": "file", "mode": 420, "size": 2, **more}
    return json.dumps(told).encode()


def tar() -> bytes:
    packed = io.BytesIO()
    members = (("é/a", tarfile.REGTYPE, ""), ("l", tarfile.SYMTYPE, "é/a"), ("h", tarfile.LNKTYPE, "é/a"))
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            archive.addfile(member)
    return packed.getvalue()


def golden() -> tampering.Files:
    with tempfile.TemporaryDirectory() as directory:
        return tampering.files_of(tampering.write(Path(directory) / "run"))


def request(endpoint: bytes, body: bytes, *more: bytes) -> bytes:
    head = [b"POST /t/TOKEN/v1/" + endpoint + b" HTTP/1.1", b"Host: x", b"Authorization: Bearer boxeval"]
    return b"\r\n".join([*head, *more, b"Content-Length: %d" % len(body), b"", body])


CHAT = (
    b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"stream":true,"n":1}'
)
RESPONSES = (
    b'{"model":"m","input":[{"type":"message","role":"user","content":"hi"}],'
    b'"tools":[{"type":"function","name":"f"}]}'
)
MESSAGES = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f"}]}'
STREAM = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}\n\n'
    b'data: {"choices":[{"delta":{"content":"a","tool_calls":[{"id":"c"}]}}],"usage":{"prompt_tokens":1}}\n\n'
    b"data: [DONE]\n\n"
)
SHIM = b"exit=0\nsignal=0\ntimed_out=0\nspawn_error=\nwall_ms=5\nstalled_ms=0\n"
LAST = b"orphans=0\nsurvivors=0\noom_kills=0\npids_denied=0\ncpu_ms=1\nmax_rss_kib=1\nfull=\n"
EXTENSION = {"protocol": "boxeval.discovery.v1", "id": "0" * 16, "method": "describe", "result": DESCRIBED}
EVENTS = tuple(
    b"".join(json.dumps(event).encode() + b"\n" for event in events)
    for events in (
        [
            {"type": "thread.started", "thread_id": "t"},
            {"type": "turn.started"},
            {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "x"}},
            {"type": "turn.completed", "usage": {"input_tokens": 2, "output_tokens": 4}},
        ],
        [
            {"type": "system", "subtype": "init", "session_id": "s"},
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "c", "name": "B"}]}},
            {"type": "result", "subtype": "success", "is_error": False, "result": "x", "total_cost_usd": 0.5},
        ],
        [
            {"type": "text", "sessionID": "s", "part": {"text": "x"}},
            {"type": "step_finish", "sessionID": "s", "part": {"reason": "stop", "tokens": {"input": 1}}},
        ],
        [
            {"type": "init", "session_id": "s"},
            {"type": "message", "role": "assistant", "content": "la", "delta": True},
            {"type": "result", "status": "success", "stats": {"input_tokens": 2}},
        ],
        [
            {"method": "boxeval/thread", "params": {"threadId": "t"}},
            {"method": "turn/completed", "params": {"threadId": "t", "turn": {"status": "completed"}}},
        ],
        [{"info": {"exit_status": "Submitted"}, "messages": [{"role": "assistant", "content": "x"}]}],
        [
            {"type": "tool_execution_start", "payload": {"toolCallId": "c", "toolName": "B"}},
            {"type": "agent_end"},
        ],
    )
)
AGENTS = (*EVENTS, b"LLM RESPONSE 2026\nASSISTANT x\n> Tokens: 12 sent, 3 cache hit, 4 received.\n")
JUDGED = (
    b'{"outcomes":[{"id":"one","verdict":"pass","reason":"r"},{"id":"two","verdict":"fail","reason":"s"}]}'
)
CASSETTE = (
    b'{"format":"boxeval.cassette/1"}\n'
    b'{"wire":"chat","model":"m","request":{},"status":200,"contentType":"a","body":""}\n'
)


def seeds() -> dict[str, tuple[bytes, ...]]:
    run = golden()
    ledger, plan = run[tampering.LEDGER], run[tampering.PLAN_FILE]
    first, second, *_ = ledger.splitlines(keepends=True)
    stream = block(frame(b"E", entry()) + frame(b"D", b"xy") + frame(b"A", b'{"repositories":[]}'))
    receipt = base64.b64decode(json.loads(second)["payload"])
    trusted = TrustFile(keys=(tampering.MINE,)).model_dump_json(by_alias=True).encode()
    return {
        "keeper-frames": (entry(), b'A{"digest":"00"}', b'{"faults":[["YQ==","EIO"]],"more":0}'),
        "keeper-stream": (stream,),
        "shim-frames": (SHIM, LAST, block(frame(b"R", SHIM))),
        "archive": (tar(),),
        "yaml-source": (RIGHT.encode(), b"a: [1, 'x', {b: 0x1}]\n--- !!t\n&a *a\n"),
        "suite": (RIGHT.encode(),),
        "ledger": (ledger, first),
        "canonical": (receipt, plan, trusted, b'{"a":[1.5,null]}'),
        "trust-file": (trusted,),
        "gateway-http": (
            request(b"chat/completions", CHAT),
            request(b"responses", RESPONSES) * 2,
            request(b"messages", MESSAGES, b"Expect: 100-continue"),
            b"GET /t/TOKEN/v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
        ),
        "gateway-bodies": (CHAT, RESPONSES, MESSAGES),
        "gateway-answers": (STREAM, STREAM.partition(b"data: ")[2]),
        "cassette": (CASSETTE,),
        "patches": (b"a\xc3\0one\ntwo\n\xff\0\xffone\n2\n", b"a\0\0\xff\0\xff\0\1"),
        "names": (b"a\n\x1b[2J\xff\\x1b", "\u00e9\u202e\u200d".encode()),
        "answers": (b'{"a":{"b":[1,1e9,"x"]}}\x1f/a/b/0', b"[NaN]\x1f"),
        "egress": (b"CONNECT example.org:443", b"GET http://[::1]:80/x", b"GET Basic dG9rZW46eA=="),
        "documents": (b'text\n```json\n{"a": [1]}\n```\n', b'{"documents":[],"error":null}'),
        "agent-streams": AGENTS,
        "extension-answers": (json.dumps(EXTENSION).encode(),),
        "judge-answers": (JUDGED,),
        "case": (json.dumps(CASE).encode(),),
        "journal": (b'{"seq":1,"at":1.0,"type":"session","session":"s","format":1}\n{"type":"tool"}\n',),
        "linear-patterns": (b"(?P<n>a+)+$\x1faaa", b"[\\p{L}]{1,3}\x1f\xc3\xa9"),
    }
