"""One turn of `codex app-server`: `app_server.py SESSION COMMAND...`, with the prompt on standard input.

Starts a thread, or goes on with SESSION if it is not empty, gives it the prompt, and copies what the server says to
standard output, line by line, until the thread's own turns are over: after a turn it may go on by itself towards a
goal. Exits 0 if the last of them was completed. The first line, which is ours, names the thread.
"""

import json
import subprocess
import sys

CLIENT = {"name": "boxeval", "title": "boxeval", "version": "1"}
FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}


class Server:
    """The server's process, and the requests to it."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.asked = 0

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """Send a request; return its result. What comes before it is copied out."""
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        for message in self.messages():
            if message.get("id") == self.asked and "method" not in message:
                if "error" in message:
                    sys.exit(f"app-server refused {method}: {json.dumps(message['error'])[:500]}")
                return message["result"]
        sys.exit(f"app-server ended before it answered {method}")

    def messages(self):
        for line in self.process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            message = json.loads(line)
            if "id" in message and "method" in message:
                # It asks something of a person, and there is none.
                self.send({"id": message["id"], "error": {"code": -32601, "message": "nobody is there"}})
            else:
                yield message


def main(session, command):
    prompt = sys.stdin.read()
    server = Server(command)
    server.ask("initialize", {"clientInfo": CLIENT})
    server.send({"method": "initialized"})
    if session:
        thread = server.ask("thread/resume", {"threadId": session, **FREE})["thread"]["id"]
    else:
        thread = server.ask("thread/start", FREE)["thread"]["id"]
    told = {"method": "boxeval/thread", "params": {"threadId": thread}}
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n")
    sys.stdout.buffer.flush()
    server.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": prompt}]})
    goal_is_active = False
    status = "lost"
    for message in server.messages():
        params = message.get("params") or {}
        if params.get("threadId") != thread:
            continue
        if message.get("method") == "thread/goal/updated":
            goal_is_active = (params.get("goal") or {}).get("status") == "active"
        elif message.get("method") == "thread/goal/cleared":
            goal_is_active = False
        elif message.get("method") == "turn/completed":
            status = params["turn"]["status"]
            if status != "completed" or not goal_is_active:
                break
    server.process.kill()
    return 0 if status == "completed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
