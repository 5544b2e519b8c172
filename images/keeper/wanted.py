"""When a fixture was last wanted, by the clock that nobody sets: a step of the machine's must not make one look unused
that a box has mounted.
"""

import os
import time


def uptime_s():
    """Seconds since the machine was started, its sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def mark(path):
    """It is wanted now. FileNotFoundError if it is not there."""
    now = uptime_s()
    os.utime(path, (now, now))


def unwanted(marks, now, keep, unused_s):
    """Of the marks by name: what may go, oldest first, beyond `keep` of them and for `unused_s` at least.

    A mark that lies ahead is one of an earlier start of the machine, and so is old.
    """
    since = {name: -1 if at > now else at for name, at in marks.items()}
    oldest_first = sorted(since, key=since.get)
    return [name for name in oldest_first[: max(len(since) - keep, 0)] if since[name] < now - unused_s]
