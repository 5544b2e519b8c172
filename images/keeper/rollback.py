"""Puts entries of a layer back to what lies below it, while the layer is not mounted.

What a layer holds of a path goes, and what is below shows again: no content is copied, so there is nothing that
a full disk, a FIFO or a link in the place of a file could hinder. Changes that are not to be undone stay. Where
they are deletions inside a directory that comes back as a whole, they become whiteouts.
"""

import contextlib
import errno
import os
import stat

from layers import (
    clear_opaque,
    descend,
    find,
    is_directory,
    is_opaque,
    listing,
    make_opaque,
    whiteout,
)
from trees import DIRECTORY, empty_directory, look, names


class Rollback:
    """`paths` are to be undone. An entry that goes takes with it all that is in it.

    `faults` has the paths of what could not be done, with the reason; the rest is done all the same.
    """

    def __init__(self, paths):
        self.paths = set(paths)
        self.holding = {path[:end] for path in self.paths for end in slashes(path)}
        self.faults = []

    @contextlib.contextmanager
    def noting(self, path):
        try:
            yield
        except OSError as error:
            self.faults.append((path, errno.errorcode.get(error.errno, "EIO")))

    def is_touched(self, path):
        """Whether something is to be undone there or further in."""
        return path in self.paths or path in self.holding

    def directory(self, layer, below, prefix, hidden):
        """`hidden`: nothing of `below` shows here as it stands."""
        present = names(layer)
        for name in present:
            with self.noting(prefix + name):
                self.entry(name, prefix + name, layer, below, hidden)
        if not hidden or not below:
            return
        for name in listing(below).difference(present):
            with self.noting(prefix + name):
                if self.is_touched(prefix + name):
                    self.show_again(name, prefix + name, layer, below)
                else:
                    whiteout(name, layer)
        clear_opaque(layer)

    def entry(self, name, path, layer, below, hidden):
        before, _ = find(name, below)
        if not is_directory(look(name, layer)):
            if self.is_touched(path):
                os.unlink(name, dir_fd=layer)
                self.show_again(name, path, layer, below)
        elif path in self.paths and not is_directory(before):
            with opened(name, layer) as inner:
                empty_directory(inner)
            os.rmdir(name, dir_fd=layer)
        elif self.is_touched(path):
            self.inside(name, path, layer, below, before, hidden)
        elif hidden and is_directory(before):
            # Its parent hides nothing any more, so it must do so itself.
            with opened(name, layer) as inner:
                make_opaque(inner)

    def inside(self, name, path, layer, below, before, hidden):
        with opened(name, layer) as inner, descend(name, below) as (under, _):
            if path in self.paths:
                os.fchmod(inner, stat.S_IMODE(before.st_mode))
            self.directory(inner, under, path + b"/", hidden or is_opaque(inner))
            mode = stat.S_IMODE(os.fstat(inner).st_mode)
            carries_nothing = not names(inner) and not is_opaque(inner)
        if carries_nothing and is_directory(before) and mode == stat.S_IMODE(before.st_mode):
            os.rmdir(name, dir_fd=layer)

    def show_again(self, name, path, layer, below):
        """The layer has no entry of this name, so what is below shows; deletions in it that stay are made anew."""
        before, _ = find(name, below)
        if not is_directory(before):
            return
        with descend(name, below) as (under, _):
            if not self.holds_other_deletions(path, under):
                return
            os.mkdir(name, 0o700, dir_fd=layer)
            with opened(name, layer) as inner:
                os.fchown(inner, before.st_uid, before.st_gid)
                os.fchmod(inner, stat.S_IMODE(before.st_mode))
                for child in listing(under):
                    child_path = path + b"/" + child
                    with self.noting(child_path):
                        if self.is_touched(child_path):
                            self.show_again(child, child_path, inner, under)
                        else:
                            whiteout(child, inner)

    def holds_other_deletions(self, path, under):
        for child in listing(under):
            child_path = path + b"/" + child
            if not self.is_touched(child_path):
                return True
            if is_directory(find(child, under)[0]):
                with descend(child, under) as (inner, _):
                    if self.holds_other_deletions(child_path, inner):
                        return True
        return False


@contextlib.contextmanager
def opened(name, directory):
    descriptor = os.open(name, DIRECTORY, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def slashes(path):
    """Where the parents of a path end."""
    return [place for place, byte in enumerate(path) if byte == ord("/")]
