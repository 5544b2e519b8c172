"""A small MCP server on stdio, as a suite could bring one: it writes a note into its working directory."""

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "save",
    "description": "Save a note.",
    "inputSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "text": {"type": "string"}},
        "required": ["name", "text"],
    },
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {}}
    if method == "tools/list":
        # Two pages, so that a client that reads one only misses the tool.
        return {"tools": [TOOL]} if params.get("cursor") else {"tools": [], "nextCursor": "2"}
    given = params["arguments"]
    if "text" not in given:
        return {"content": [{"type": "text", "text": "text is missing"}], "isError": True}
    Path(given["name"]).write_text(given["text"])
    return {"content": [{"type": "text", "text": f"saved {given['name']}"}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), flush=True)
        result = answer(request["method"], request["params"])
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
