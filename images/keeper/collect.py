"""How a tree differs from the one below it, entry by entry and by content, under the policy's caps."""

import contextlib
import hashlib
import os
import stat
import time
from base64 import b64encode

from layers import descend, find, is_directory, is_whiteout, listing, strip_attributes, topmost
from trees import DIRECTORY, FILE, kind_of, look, names
from wire import CHUNK, OverCap, Refused

NAMES_BYTES = 16 * 1024 * 1024


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
            # Bytes and entries are bounded, so this is a slow machine's doing and not the candidate's.
            raise Refused(f"not read within {self.time_ms} ms")

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
    """Tells how the view of `layers` over `below` differs from that of `below` alone (see layers.py), by content.

    Earlier contents follow as far as they fit into `old_bytes` each and `all_old_bytes` together.
    """

    def __init__(self, wire, caps, old_bytes=0, all_old_bytes=0):
        self.wire, self.caps = wire, caps
        self.old_bytes, self.all_old_bytes = old_bytes, all_old_bytes
        self.told = 0
        self.repositories = []  # changed directories other than the top that have a `.git`

    def declared(self, path, top):
        """What is at one path below an open directory, all of it. No link on the way there is followed."""
        *above, name = path.split(b"/")
        if any(part in (b"", b".", b"..") for part in (*above, name)):
            raise Refused("not a plain relative path")
        with contextlib.ExitStack() as opened:
            directory = top
            for part in above:
                if not is_directory(look(part, directory)):
                    return
                directory = os.open(part, DIRECTORY, dir_fd=directory)
                opened.callback(os.close, directory)
            info = look(name, directory)
            if info is None:
                return
            self.caps.entry(path)
            if is_directory(info):
                self.subdirectory(name, path, [directory], [], hidden=True)
            else:
                self.leaf(name, path, info, directory, None, None, [])

    def directory(self, layers, below, prefix, hidden):
        """`hidden`: nothing of `below` shows through, so what the layers lack is deleted."""
        told = self.told
        present = sorted({name for layer in layers for name in names(layer)})
        if hidden:
            for name in sorted(listing(below).difference(present)):
                self.deleted(name, below, prefix + name)
        for name in present:
            path = prefix + name
            self.caps.entry(path)
            info, at = topmost(name, layers)
            before, was_at = find(name, below)
            strip_attributes(b"/proc/self/fd/%d/%s" % (at, name))
            if is_whiteout(info):
                if before is not None:
                    self.deleted(name, below, path, counted=True)
            elif is_directory(info):
                self.subdirectory(name, path, layers, below, hidden)
            else:
                self.leaf(name, path, info, at, before, was_at, below)
        if prefix and self.told > told and (topmost(b".git", layers)[0] or find(b".git", below)[0]):
            self.repositories.append(prefix.rstrip(b"/"))

    def subdirectory(self, name, path, layers, below, hidden):
        info, _ = topmost(name, layers)
        before, was_at = find(name, below)
        if not is_directory(before) or stat.S_IMODE(info.st_mode) != stat.S_IMODE(before.st_mode):
            self.tell(path, info, before, was_at)
            self.earlier(name, before, was_at)
        with descend(name, layers) as (inner, hides), descend(name, below) as (under, _):
            self.directory(inner, under, path + b"/", hidden or hides)

    def leaf(self, name, path, info, at, before, was_at, below):
        link = os.readlink(name, dir_fd=at) if stat.S_ISLNK(info.st_mode) else None
        self.caps.names(link or b"")
        if before is not None and self.same(name, at, was_at, info, before, link):
            return
        if is_directory(before):
            self.deleted(name, below, path, itself=False)
        self.tell(path, info, before, was_at, link)
        if stat.S_ISREG(info.st_mode):
            for piece in pieces_of(name, at):
                self.caps.content(len(piece))
                self.wire.send(b"D", piece)
        self.earlier(name, before, was_at)

    def same(self, name, at, was_at, info, before, link):
        if kind_of(info) != kind_of(before) or stat.S_IMODE(info.st_mode) != stat.S_IMODE(before.st_mode):
            return False
        if link is not None:
            return link == os.readlink(name, dir_fd=was_at)
        if not stat.S_ISREG(info.st_mode):
            return info.st_rdev == before.st_rdev
        return info.st_size == before.st_size and digest_of(name, at) == digest_of(name, was_at)

    def earlier(self, name, before, was_at):
        """The content that a changed regular file had."""
        if before is None or not stat.S_ISREG(before.st_mode):
            return
        if before.st_size <= min(self.old_bytes, self.all_old_bytes):
            self.all_old_bytes -= before.st_size
            for piece in pieces_of(name, was_at):
                self.wire.send(b"B", piece)

    def deleted(self, name, below, path, itself=True, counted=False):
        info, at = find(name, below)
        if itself:
            if not counted:
                self.caps.entry(path)
            self.tell(path, None, info, at)
            self.earlier(name, info, at)
        if is_directory(info):
            with descend(name, below) as (under, _):
                for child in sorted(listing(under)):
                    self.deleted(child, under, path + b"/" + child)

    def tell(self, path, info, before, was_at, link=None):
        self.told += 1
        entry = {"path": b64encode(path).decode()}
        if info is not None:
            entry |= {"kind": kind_of(info), "mode": stat.S_IMODE(info.st_mode), "size": info.st_size}
        if link is not None:
            entry["link"] = b64encode(link).decode()
        if before is not None:
            entry |= self.was(path.rpartition(b"/")[2], was_at, before)
        self.wire.send_json(b"E", entry)

    def was(self, name, was_at, before):
        """What the entry was below."""
        told = {"was": kind_of(before), "wasMode": stat.S_IMODE(before.st_mode), "wasSize": before.st_size}
        if stat.S_ISLNK(before.st_mode):
            link = os.readlink(name, dir_fd=was_at)
            self.caps.names(link)
            told["wasLink"] = b64encode(link).decode()
        if stat.S_ISREG(before.st_mode):
            told["wasSha256"] = digest_of(name, was_at)
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
