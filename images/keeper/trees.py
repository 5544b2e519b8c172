"""Tree work on overlay layers, always by directory descriptors and names, so that no link is ever followed.

A layer is an overlay's upper directory. In it a deleted entry is a character device 0/0, and a directory
that hides the one below it has the attribute `trusted.overlay.opaque`, which only CAP_SYS_ADMIN may read
(docs/adr/0004-keeper.md).
"""

import hashlib
import os
import secrets
import stat
import time
from base64 import b64encode

from wire import CHUNK, OverCap, Refused

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
NAMES_BYTES = 16 * 1024 * 1024
EPOCH = 1_577_836_800  # 2020-01-01, so that a fixture's times are the same everywhere


def kind_of(info):
    return KINDS[stat.S_IFMT(info.st_mode)]


def is_whiteout(info):
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def is_opaque(directory):
    """`directory` is an open descriptor."""
    try:
        return os.getxattr(directory, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


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
    """Remove everything below `path`, however deep: directories are moved to the top and emptied there."""
    top = os.open(path, DIRECTORY)
    token, serial = secrets.token_hex(8).encode(), 0
    try:
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
    finally:
        os.close(top)


class Caps:
    """Counts what is read against the policy's caps."""

    def __init__(self, bytes, members, depth, name_bytes, path_bytes, time_ms):
        self.bytes, self.members, self.depth = bytes, members, depth
        self.name_bytes, self.path_bytes, self.time_ms = name_bytes, path_bytes, time_ms
        self.until = time.monotonic() + time_ms / 1000
        self.seen_bytes = self.seen_members = self.seen_names = 0

    def entry(self, path):
        self.seen_members += 1
        self.names(path)
        if self.seen_members > self.members:
            raise OverCap(f"more than {self.members} entries")
        if path.count(b"/") >= self.depth:
            raise OverCap(f"deeper than {self.depth} directories")
        if len(path) > self.path_bytes or len(path.rpartition(b"/")[2]) > self.name_bytes:
            raise OverCap("a name or path is too long")
        if time.monotonic() > self.until:
            raise OverCap(f"not read within {self.time_ms} ms")

    def names(self, name):
        """Paths and link targets go into one receipt line, so all of them together are bounded too."""
        self.seen_names += len(name)
        if self.seen_names > NAMES_BYTES:
            raise OverCap(f"more than {NAMES_BYTES} bytes of names")

    def content(self, size):
        self.seen_bytes += size
        if self.seen_bytes > self.bytes:
            raise OverCap(f"more than {self.bytes} bytes")


class Collector:
    """Tells, entry by entry, how the tree below `layer` differs from the tree below `lower`, by content.

    Earlier contents follow as far as they fit into `old_bytes` each and `all_old_bytes` together.
    """

    def __init__(self, wire, caps, old_bytes=0, all_old_bytes=0):
        self.wire, self.caps = wire, caps
        self.old_bytes, self.all_old_bytes = old_bytes, all_old_bytes
        self.told = 0
        self.repositories = []  # changed directories other than the top that have a `.git`

    def directory(self, layer, lower, prefix, hidden):
        """`hidden`: nothing of `lower` shows through, so what the layer lacks is deleted."""
        told = self.told
        present = names(layer)
        if hidden and lower is not None:
            for name in set(names(lower)).difference(present):
                self.deleted(name, lower, prefix + name)
        for name in present:
            path = prefix + name
            self.caps.entry(path)
            info, before = look(name, layer), look(name, lower)
            if is_whiteout(info):
                if before is not None:
                    self.deleted(name, lower, path)
            elif stat.S_ISDIR(info.st_mode):
                self.subdirectory(name, path, layer, lower, info, before, hidden)
            else:
                self.leaf(name, path, layer, lower, info, before)
        if prefix and self.told > told and (look(b".git", layer) or look(b".git", lower)):
            self.repositories.append(prefix.rstrip(b"/"))

    def subdirectory(self, name, path, layer, lower, info, before, hidden):
        merged = before is not None and stat.S_ISDIR(before.st_mode)
        if not merged or stat.S_IMODE(info.st_mode) != stat.S_IMODE(before.st_mode):
            self.tell(path, info, before, lower)
            self.earlier(path, before, lower)
        inner = os.open(name, DIRECTORY, dir_fd=layer)
        below = os.open(name, DIRECTORY, dir_fd=lower) if merged else None
        try:
            self.directory(inner, below, path + b"/", hidden or is_opaque(inner))
        finally:
            os.close(inner)
            if below is not None:
                os.close(below)

    def leaf(self, name, path, layer, lower, info, before):
        link = os.readlink(name, dir_fd=layer) if stat.S_ISLNK(info.st_mode) else None
        self.caps.names(link or b"")
        if before is not None and self.same(name, layer, lower, info, before, link):
            return
        if before is not None and stat.S_ISDIR(before.st_mode):
            self.deleted(name, lower, path, itself=False)
        self.tell(path, info, before, lower, link)
        if stat.S_ISREG(info.st_mode):
            for piece in pieces_of(name, layer):
                self.caps.content(len(piece))
                self.wire.send(b"D", piece)
        self.earlier(path, before, lower)

    def same(self, name, layer, lower, info, before, link):
        if kind_of(info) != kind_of(before) or stat.S_IMODE(info.st_mode) != stat.S_IMODE(before.st_mode):
            return False
        if link is not None:
            return link == os.readlink(name, dir_fd=lower)
        if not stat.S_ISREG(info.st_mode) or info.st_size != before.st_size:
            return False
        return digest_of(name, layer) == digest_of(name, lower)

    def earlier(self, path, before, lower):
        """The content that a changed regular file had."""
        if before is None or not stat.S_ISREG(before.st_mode):
            return
        if before.st_size <= min(self.old_bytes, self.all_old_bytes):
            self.all_old_bytes -= before.st_size
            for piece in pieces_of(path.rpartition(b"/")[2], lower):
                self.wire.send(b"B", piece)

    def deleted(self, name, lower, path, itself=True):
        info = look(name, lower)
        if itself:
            self.caps.entry(path)
            self.tell(path, None, info, lower)
            self.earlier(path, info, lower)
        if stat.S_ISDIR(info.st_mode):
            inner = os.open(name, DIRECTORY, dir_fd=lower)
            try:
                for child in names(inner):
                    self.deleted(child, inner, path + b"/" + child)
            finally:
                os.close(inner)

    def tell(self, path, info, before, lower, link=None):
        self.told += 1
        entry = {"path": b64encode(path).decode()}
        if info is not None:
            entry |= {"kind": kind_of(info), "mode": stat.S_IMODE(info.st_mode), "size": info.st_size}
        if link is not None:
            entry["link"] = b64encode(link).decode()
        if before is not None:
            entry |= self.was(path.rpartition(b"/")[2], lower, before)
        self.wire.send_json(b"E", entry)

    def was(self, name, lower, before):
        """What the entry was in the fixture."""
        told = {"was": kind_of(before), "wasMode": stat.S_IMODE(before.st_mode), "wasSize": before.st_size}
        if stat.S_ISLNK(before.st_mode):
            link = os.readlink(name, dir_fd=lower)
            self.caps.names(link)
            told["wasLink"] = b64encode(link).decode()
        if stat.S_ISREG(before.st_mode):
            told["wasSha256"] = digest_of(name, lower)
        return told


def pieces_of(name, directory):
    descriptor = os.open(name, FILE, dir_fd=directory)
    try:
        while piece := os.read(descriptor, CHUNK):
            yield piece
    finally:
        os.close(descriptor)


def digest_of(name, directory):
    digest = hashlib.sha256()
    for piece in pieces_of(name, directory):
        digest.update(piece)
    return digest.hexdigest()


class Planter:
    """Writes a stream of entries below an empty directory of ours and computes the tree's digest."""

    def __init__(self, root, uid, gid):
        self.root, self.uid, self.gid = root, uid, gid
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
        os.utime(place, (EPOCH, EPOCH))


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
