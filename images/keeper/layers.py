"""What an overlay shows: a stack of directories, topmost first, each over the ones after it.

The stack of a workspace is layers over a fixture. In a layer a deleted entry is a character device 0/0, and a
directory that hides what lies below it has the attribute `trusted.overlay.opaque`, which only CAP_SYS_ADMIN
may read and write (docs/adr/0004-keeper.md). Everything here works on stacks of open descriptors.
"""

import contextlib
import errno
import os
import stat

from trees import DIRECTORY, look, names
from wire import OverCap

OPAQUE = "trusted.overlay.opaque"


def is_whiteout(info):
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def is_directory(info):
    return info is not None and stat.S_ISDIR(info.st_mode)


def is_opaque(directory):
    """`directory` is an open descriptor."""
    try:
        return os.getxattr(directory, OPAQUE) == b"y"
    except OSError:
        return False


def make_opaque(directory):
    os.setxattr(directory, OPAQUE, b"y")


def clear_opaque(directory):
    try:
        os.removexattr(directory, OPAQUE)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise


def whiteout(name, directory):
    os.mknod(name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=directory)


def strip_attributes(place):
    """Drop what no tree is made of: a user's attributes and access lists, which nothing tells and no digest covers.

    `place` is an open directory, or a path whose last part may be a link, which is not followed.
    """
    options = {} if isinstance(place, int) else {"follow_symlinks": False}
    try:
        found = os.listxattr(place, **options)
    except OSError as error:
        if error.errno in (errno.E2BIG, errno.ERANGE):
            raise OverCap("more attributes on one entry than can be listed") from None
        raise
    for name in found:
        if not name.startswith("trusted."):
            os.removexattr(place, name, **options)


def topmost(name, stack):
    """The first entry of this name, a whiteout too, and the directory that holds it; None, None without one."""
    for directory in stack:
        info = look(name, directory)
        if info is not None:
            return info, directory
    return None, None


def find(name, stack):
    """The entry that shows, and the directory that holds it; None, None if nothing shows."""
    info, directory = topmost(name, stack)
    return (None, None) if info is None or is_whiteout(info) else (info, directory)


def listing(stack):
    """Names of the entries that show."""
    seen = {}
    for directory in stack:
        for name in names(directory):
            if name not in seen:
                seen[name] = not is_whiteout(look(name, directory))
    return {name for name, shows in seen.items() if shows}


@contextlib.contextmanager
def descend(name, stack):
    """The stack of a directory's merged parts, and whether something hides what lies below the last of them.

    Without a directory of that name on top, the stack is empty.
    """
    with contextlib.ExitStack() as opened:
        parts, hides = [], False
        for directory in stack:
            info = look(name, directory)
            if info is None:
                continue
            if not is_directory(info):
                hides = True
                break
            part = os.open(name, DIRECTORY, dir_fd=directory)
            opened.callback(os.close, part)
            parts.append(part)
            if is_opaque(part):
                hides = True
                break
        yield parts, hides
