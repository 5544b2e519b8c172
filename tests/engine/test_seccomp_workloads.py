"""What programs do all day works under boxeval's filter of system calls, and what the filter is for does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from test_box_ends import play

from boxeval.sandbox.box import Box
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ensure
from boxeval.sandbox.settings import seccomp_profile
from boxeval.sandbox.slot import Slot, remove_volume
from engine_trees import put

MakeBox = Callable[..., Box]

PYTHON = {
    "threads": "import concurrent.futures as c; print(sum(c.ThreadPoolExecutor(8).map(abs, range(-9, 0))) == 45)",
    "processes": "import multiprocessing as m; print(m.get_context('fork').Pool(2).map(abs, [-1, -2]) == [1, 2])",
    "spawned processes": (
        "import subprocess as s; print(s.run(['sh', '-c', 'echo $0'], capture_output=True).stdout == b'sh\\n')"
    ),
    "asyncio and its child watcher": (
        "import asyncio, subprocess\n"
        "async def main():\n"
        "    child = await asyncio.create_subprocess_exec('echo', 'x', stdout=subprocess.PIPE)\n"
        "    return (await child.communicate())[0] == b'x\\n'\n"
        "print(asyncio.run(main()))"
    ),
    "sqlite": (
        "import sqlite3; c = sqlite3.connect('/workspace/x.db'); c.execute('pragma journal_mode=wal')\n"
        "c.execute('create table t(a)'); c.execute('insert into t values (1)'); c.commit()\n"
        "print(c.execute('select a from t').fetchall() == [(1,)])"
    ),
    "sockets of all kinds that there are": (
        "import socket as s\n"
        "for family, place in ((s.AF_INET, '127.0.0.1'), (s.AF_INET6, '::1')):\n"
        "    try: server = s.create_server((place, 0), family=family)\n"
        "    except OSError as error: assert family == s.AF_INET6 and error.errno == 99, error; continue\n"
        "    client = s.create_connection(server.getsockname()[:2])\n"
        "    s.socket(family, s.SOCK_DGRAM).bind((place, 0))\n"
        "left, right = s.socketpair(); left.send(b'x')\n"
        "print(right.recv(1) == b'x' and s.getaddrinfo('localhost', 80) != [] and s.if_nameindex() == [(1, 'lo')])"
    ),
    "shared memory and semaphores": (
        "import multiprocessing as m\n"
        "from multiprocessing.shared_memory import SharedMemory\n"
        "lock = m.Lock(); block = SharedMemory(create=True, size=64); block.buf[0] = 1\n"
        "with lock: print(block.buf[0] == 1)\n"
        "block.close(); block.unlink()"
    ),
    "files, links, marks, pipes": (
        "import os, mmap, fcntl\n"
        "open('/workspace/a', 'w').write('x'); os.link('/workspace/a', '/workspace/b')\n"
        "os.symlink('a', '/workspace/c')\n"
        "os.mkfifo('/workspace/p'); os.chmod('/workspace/a', 0o755); os.rename('/workspace/b', '/workspace/d')\n"
        "fcntl.flock(open('/workspace/a'), fcntl.LOCK_EX); os.setxattr('/workspace/a', 'user.x', b'1')\n"
        "os.copy_file_range(os.open('/workspace/a', os.O_RDONLY), os.open('/workspace/e', os.O_RDWR | os.O_CREAT), 1)\n"
        "print(os.getxattr('/workspace/a', 'user.x') == b'1' and os.memfd_create('x') > 0)"
    ),
    "signals and timers": (
        "import signal, time\n"
        "got = []; signal.signal(signal.SIGALRM, lambda *_: got.append(1))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
        "time.sleep(0.2); print(got == [1])"
    ),
    "an own terminal": (
        "import os, pty; pid, fd = pty.fork()\n"
        "if pid == 0: os.execvp('tty', ['tty'])\n"
        "print(os.read(fd, 99).startswith(b'/dev/pts/'))"
    ),
}


def test_python(make_box: MakeBox) -> None:
    lines = []
    for name, script in PYTHON.items():
        lines.append(f"python3 - <<'END' > /tmp/said 2>&1 || :\n{script}\nEND")
        lines.append(f"test \"$(cat /tmp/said)\" = True || {{ echo '{name}:'; cat /tmp/said; }}")
    command, _ = play(make_box(), "\n".join(lines), timeout_ms=60_000)
    assert (command.exit_code, command.stdout.kept) == (0, b"")


def test_git_and_shell(make_box: MakeBox) -> None:
    script = (
        "git init -q -b main . && git config user.name a && git config user.email a@b.invalid\n"
        "echo 1 > f && git add f && git commit -q -m 1\n"
        "git checkout -q -b side && echo 2 > f && git commit -q -a -m 2\n"
        "git checkout -q main && git merge -q side && git gc -q && git fsck && git stash list\n"
        "git clone -q . /tmp/clone && git -C /tmp/clone log --oneline | wc -l\n"
        "bash -c 'set -m; sleep 0.1 & wait %1; diff <(echo a) <(echo a) && echo same'\n"
        "seq 100000 | sort -R | sort -n | tail -1; tar c f | tar t; find . -name f | xargs wc -l"
    )
    command, _ = play(make_box(), script, timeout_ms=60_000)
    assert command.exit_code == 0, command.stderr.kept
    assert command.stdout.kept == b"2\nsame\n100000\nf\n1 ./f\n"


LEAK = r"""
#include <pthread.h>
#include <stdlib.h>
static void *work(void *p) { return p; }
int main(int argc, char **argv) {
    pthread_t t; pthread_create(&t, NULL, work, NULL); pthread_join(t, NULL);
    if (argc > 1) { char *volatile lost = malloc(7); lost = NULL; (void)lost; }
    (void)argv; return 0;
}
"""


def test_a_compiler_and_a_leak_checker_that_traces(engine: Engine, cache: Path, slot: Slot) -> None:
    """LeakSanitizer stops its process by ptrace, and fails loudly where that is refused."""
    del cache
    image = ensure(engine, "boxeval/shim", note=lambda _: None)
    workspace = slot.agent_workspace("tc", "compile", put(slot, []))
    box = slot.box("tc", "agent", image, workspace, 600)
    script = (
        f"cat > t.c <<'END'{LEAK}END\n"
        "gcc -fsanitize=address -g -pthread -o t t.c && ./t && echo clean\n"
        "./t leak 2>&1 | grep -o 'detected memory leaks'; ./t leak 2>/dev/null || echo $?"
    )
    try:
        command, _ = play(box, script, timeout_ms=60_000)
    finally:
        box.remove()
        remove_volume(engine, workspace)
    assert command.stdout.kept == b"clean\ndetected memory leaks\n1\n", command.stderr.kept


def test_the_filter_names_nothing_twice_and_refuses_what_it_does_not_name() -> None:
    profile = json.loads(seccomp_profile())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert all(not arch["subArchitectures"] for arch in profile["archMap"])
    plain = [name for rule in profile["syscalls"] if "args" not in rule for name in rule["names"]]
    filtered = {name for rule in profile["syscalls"] if "args" in rule for name in rule["names"]}
    assert len(plain) == len(set(plain))
    # A name without conditions would make its conditions elsewhere void.
    assert not filtered & set(plain)
    assert filtered == {"socket", "socketpair", "clone", "mknod", "mknodat", "personality"}


@pytest.mark.parametrize(
    "name",
    [
        *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),
        *(
            "unshare",
            "setns",
            "mount",
            "umount2",
            "fsopen",
            "move_mount",
            "open_tree",
            "pivot_root",
            "chroot",
        ),
        *(
            "open_by_handle_at",
            "init_module",
            "kexec_load",
            "reboot",
            "swapon",
            "clock_settime",
            "settimeofday",
        ),
        *("sethostname", "syslog", "acct", "quotactl", "socketcall", "process_vm_writev", "fanotify_init"),
    ],
)
def test_never_allowed(name: str) -> None:
    profile = json.loads(seccomp_profile())
    assert name not in {each for rule in profile["syscalls"] for each in rule["names"]}
