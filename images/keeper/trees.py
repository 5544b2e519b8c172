"""Tree work, always by directory descriptors and names, so that no link is ever followed."""

import hashlib
import os
import secrets
import stat

from wire import Refused

KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
EPOCH = 1_577_836_800  # 2020-01-01, so that a fixture's times are the same everywhere


def kind_of(info):
    return KINDS[stat.S_IFMT(info.st_mode)]


def names(descriptor):
    return sorted(os.fsencode(name) for name in os.listdir(descriptor))


def look(name, descriptor):
    """lstat, or None if there is no such entry."""
    if descriptor is None:
        return None
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None


def empty(path):
    """Remove everything below `path`, however deep."""
    top = os.open(path, DIRECTORY)
    try:
        empty_directory(top)
    finally:
        os.close(top)


def empty_directory(top):
    """Remove everything in an open directory: inner directories are moved to its top and emptied there."""
    token, serial = secrets.token_hex(8).encode(), 0
    while entries := names(top):
        for name in entries:
            if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=top)
                continue
            inner = os.open(name, DIRECTORY, dir_fd=top)
            try:
                for child in names(inner):
                    if stat.S_ISDIR(os.stat(child, dir_fd=inner, follow_symlinks=False).st_mode):
                        serial += 1
                        os.rename(child, b"%s-%d" % (token, serial), src_dir_fd=inner, dst_dir_fd=top)
                    else:
                        os.unlink(child, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


class Planter:
    """Writes a stream of entries below an empty directory of ours and computes the tree's digest.

    `modified` is what files and directories get as their time.
    """

    def __init__(self, root, uid, gid, modified=EPOCH):
        self.root, self.uid, self.gid, self.modified = root, uid, gid, modified
        self.digest = hashlib.sha256()

    def note(self, kind, path, mode, value):
        self.digest.update(b"%s\0%s\0%04o\0%s\n" % (kind.encode(), path, mode, value))

    def place(self, path):
        parts = path.split(b"/")
        if not path or any(part in (b"", b".", b"..") for part in parts) or b"\0" in path:
            raise Refused("a fixture path is not plain and relative")
        return os.path.join(self.root, path)

    def directory(self, path, mode):
        place = self.place(path)
        os.mkdir(place, 0o700)
        self.note("directory", path, mode, b"")
        self.finish(place, mode)

    def symlink(self, path, mode, target):
        place = self.place(path)
        os.symlink(target, place)
        os.chown(place, self.uid, self.gid, follow_symlinks=False)
        self.note("symlink", path, mode, target)

    def file(self, path, mode, pieces):
        place = self.place(path)
        content = hashlib.sha256()
        descriptor = os.open(
            place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "wb") as sink:
            for piece in pieces:
                content.update(piece)
                sink.write(piece)
        self.note("file", path, mode, content.hexdigest().encode())
        self.finish(place, mode)

    def finish(self, place, mode):
        os.chown(place, self.uid, self.gid)
        os.chmod(place, mode & 0o777)
        os.utime(place, (self.modified, self.modified))


def parents_first(root):
    """Yield (path, kind, info) of everything below `root`, parents before children, sorted as fixtures are."""
    pending = [b""]
    while pending:
        prefix = pending.pop(0)
        with os.scandir(os.path.join(root, prefix)) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            path = os.path.join(prefix, entry.name)
            yield path, kind_of(info), info
            if stat.S_ISDIR(info.st_mode):
                pending.append(path)
