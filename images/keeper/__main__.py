"""The keeper: one small trusted container for each worker slot.

It holds the slot's network namespace, its capped tmpfs and the fixture cache, and does all tree work, so
that no hostile tree ever touches the host's own file system. No code of a trial runs here; what it reads
from layers it treats as hostile.

    /slot/agent, /slot/grade     two capped tmpfs, so that a candidate that fills its disk leaves the
                                 grader's alone; NAME/{upper,work} in them are layers of the current trial
    /slot/home, /slot/tmp        two more, which the boxes of a trial with steps share, one after another
    /fixtures/KEY/{tree,digest,notes}  complete fixtures, written once
    /opt/boxeval/tools/shim      shared with the boxes through a volume
"""

import contextlib
import filecmp
import json
import os
import re
import secrets
import stat
import time
from base64 import b64decode, b64encode

from collect import Caps, Collector
from forward import Forwarder
from layers import is_opaque, is_whiteout, strip_attributes, whiteout
from rollback import Rollback
from trees import DIRECTORY, EPOCH, FILE, Planter, empty, kind_of, parents_first
from wanted import mark, unwanted, uptime_s
from wire import CHUNK, Gone, OverCap, Refused, Wire

TOOLS, AS_BUILT = "/opt/boxeval/tools", "/opt/boxeval/as-built"
AREAS, FIXTURES = ("/slot/agent", "/slot/grade"), "/fixtures"
PRIVATE = {"/slot/home": 0o700, "/slot/tmp": 0o1777}
LAYER_INODES = 8  # a layer's own three directories, and those that the kernel makes to mount it
NAMED = 20
MAX_FAULTS = 100
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,127}")


def layer_of(name):
    """`agent.NAME` or `grade.NAME`: a layer's folder."""
    area, _, rest = safe(name).partition(".")
    if f"/slot/{area}" not in AREAS or not rest:
        raise Refused("not a layer's name")
    return f"/slot/{area}/{rest}"


def safe_inside(name):
    if not re.fullmatch(r"\.?[a-z0-9-]{1,64}", name):
        raise Refused("not a plain name")
    return name


def safe(name):
    if not NAME.fullmatch(name):
        raise Refused("not a plain name")
    return name


class Keeper:
    """Answers requests, one at a time, until the controller hangs up."""

    def __init__(self):
        self.wire = Wire()
        self.forwarder = Forwarder()

    def serve(self):
        while True:
            request = self.wire.receive_json(b"Q")
            try:
                answer = getattr(self, "do_" + request.pop("op"))(**request)
            except OverCap as error:
                answer = {"cap": str(error)}
            except (Refused, OSError) as error:
                answer = {"error": str(error) or type(error).__name__}
            self.wire.send_json(b"A", answer or {})
            self.wire.flush()

    def do_hello(self):
        """`tools`: whether their volume holds what the image does. An engine that died filling it leaves a part."""
        names = os.listdir(AS_BUILT)
        same, _, _ = filecmp.cmpfiles(AS_BUILT, TOOLS, names, shallow=False)
        return {"protocol": 1, "tools": len(same) == len(names)}

    def do_reset(self):
        self.forwarder.close()
        for area in (*AREAS, *PRIVATE):
            empty(area)
        for area, mode in PRIVATE.items():
            os.chmod(area, mode)

    def do_layer(self, name, uid, gid):
        """An empty layer, whose root belongs to the box's user."""
        place = layer_of(name)
        if os.statvfs(os.path.dirname(place)).f_favail < LAYER_INODES:
            raise OverCap("no room for another layer")
        os.mkdir(place, 0o755)
        os.mkdir(f"{place}/work", 0o755)
        os.mkdir(f"{place}/upper", 0o755)
        os.chown(f"{place}/upper", uid, gid)

    def do_drop_layer(self, name):
        place = layer_of(name)
        empty(place)
        os.rmdir(place)

    def do_fill_layer(self, name, uid, gid, hide):
        """Receive entries, and let nothing of the layers below show at the paths of `hide`.

        They are newer than what a candidate built, or a `make` would take that instead of building from them.
        """
        upper = os.fsencode(f"{layer_of(name)}/upper")
        self.plant(Planter(upper, uid, gid, time.time()))
        for path in hide:
            whiteout(os.path.join(upper, b64decode(path)), None)

    def do_fill_home(self, uid, gid):
        """Receive entries into the private home, before the first box of a trial has it."""
        self.plant(Planter(b"/slot/home", uid, gid))

    def do_has_fixture(self, key):
        try:
            mark(f"{FIXTURES}/{safe(key)}/digest")
        except FileNotFoundError:
            return {"present": False}
        return {"present": True}

    def do_trim_fixtures(self, keep, unused_s):
        """Drop the fixtures that were wanted least recently, beyond `keep` of them and for `unused_s` at least.

        One that a box has mounted was wanted when its trial was staged, so it is never among them.
        """
        marks = {}
        for key in filter(NAME.fullmatch, os.listdir(FIXTURES)):
            with contextlib.suppress(FileNotFoundError):
                marks[key] = os.stat(f"{FIXTURES}/{key}/digest").st_mtime
        dropped = []
        for key in unwanted(marks, uptime_s(), keep, unused_s):
            # Asked once more, since another slot may want it now, or be dropping it.
            with contextlib.suppress(FileNotFoundError):
                if os.stat(f"{FIXTURES}/{key}/digest").st_mtime == marks[key]:
                    self.do_drop_fixture(key)
                    dropped.append(key)
        return {"dropped": dropped}

    def do_put_fixture(self, key, uid, gid, digest):
        """Receive a fixture, check its digest, and only then give it its name."""
        place, planter = self.new_fixture(uid, gid)
        try:
            self.plant(planter)
            if planter.digest.hexdigest() != digest:
                raise Refused("the fixture's digest is not the one that was planned")
            self.name_fixture(place, key)
        except BaseException:
            empty(place)
            os.rmdir(place)
            raise

    def do_adopt(self, key, uid, gid, layer, base, inside, notes):
        """Make a new fixture out of what a set-up box left, and keep `notes` with it.

        The layer over fixture `base`, or, with `inside`, what the layer holds below that directory alone.
        """
        upper = os.fsencode(layer_of(layer) + "/upper" + ("/" + safe_inside(inside) if inside else ""))
        lower = os.fsencode(f"{FIXTURES}/{safe(base)}/tree") if base else None
        if not stat.S_ISDIR(os.lstat(upper).st_mode):
            raise Refused("set-up left no directory there")
        place, planter = self.new_fixture(uid, gid)
        try:
            self.merge(planter, upper, lower)
            with open(f"{place}/notes", "w") as sink:
                json.dump(notes, sink)
            self.name_fixture(place, key)
        except BaseException:
            empty(place)
            os.rmdir(place)
            raise
        return self.do_fixture(key)

    def do_fixtures(self):
        return {"keys": [key for key in os.listdir(FIXTURES) if NAME.fullmatch(key)]}

    def do_drop_fixture(self, key):
        place = f"{FIXTURES}/_{secrets.token_hex(8)}"
        os.rename(f"{FIXTURES}/{safe(key)}", place)  # from here on nobody finds it half empty
        empty(place)
        os.rmdir(place)

    def do_fixture(self, key):
        """The digest of a fixture, and the notes that it was adopted with."""
        place, notes = f"{FIXTURES}/{safe(key)}", {}
        with open(f"{place}/digest") as source:
            digest = source.read()
        with contextlib.suppress(FileNotFoundError), open(f"{place}/notes") as source:
            notes = json.load(source)
        return {"digest": digest, **notes}

    def do_list_fixture(self, key):
        """Stream path and kind of everything in a fixture."""
        for path, kind, _ in parents_first(os.fsencode(f"{FIXTURES}/{safe(key)}/tree")):
            self.wire.send_json(b"E", {"path": b64encode(path).decode(), "kind": kind})

    def do_collect(self, layers, below, base, caps, old_bytes, all_old_bytes):
        """Stream every change that `layers` make to the layers `below` over fixture `base`."""
        collector = Collector(self.wire, Caps(**caps), old_bytes, all_old_bytes)
        with self.opened(layers) as over, self.opened(below, base) as under:
            for layer in over:
                strip_attributes(layer)
            collector.directory(over, under, b"", hidden=False)
        return {"repositories": [b64encode(path).decode() for path in collector.repositories[:NAMED]]}

    def do_collect_home(self, paths, caps):
        """Stream what the private home holds at `paths`. What is not there is left out."""
        collector = Collector(self.wire, Caps(**caps))
        home = os.open("/slot/home", DIRECTORY)
        try:
            for path in paths:
                collector.declared(b64decode(path), home)
        finally:
            os.close(home)
        return {"repositories": []}

    def do_rollback(self, layer, below, base):
        """Receive paths, and make each of them in `layer` what it is below."""
        rollback = Rollback(self.paths())
        with self.opened([layer]) as over, self.opened(below, base) as under:
            rollback.directory(over[0], under, b"", hidden=False)
        faults = [[b64encode(path).decode(), reason] for path, reason in rollback.faults]
        return {"faults": faults[:MAX_FAULTS], "more": len(faults[MAX_FAULTS:])}

    @contextlib.contextmanager
    def opened(self, layers, base=None):
        """A stack of layers, topmost first, over a fixture, as open directories."""
        places = [f"{layer_of(layer)}/upper" for layer in layers]
        places += [f"{FIXTURES}/{safe(base)}/tree"] if base else []
        with contextlib.ExitStack() as stack:
            descriptors = []
            for place in places:
                descriptors.append(os.open(place, DIRECTORY))
                stack.callback(os.close, descriptors[-1])
            yield descriptors

    def paths(self):
        """Receive lists of paths until Z."""
        found = set()
        kind, data = self.wire.receive()
        while kind == b"E":
            found.update(b64decode(path) for path in json.loads(data))
            kind, data = self.wire.receive()
        if kind != b"Z":
            raise Gone("unexpected frame")
        return found

    def do_open_gateway(self, port):
        self.forwarder.open(port)

    def do_close_gateway(self):
        self.forwarder.close()

    def new_fixture(self, uid, gid):
        place = f"{FIXTURES}/_{secrets.token_hex(8)}"
        os.mkdir(place, 0o755)
        os.mkdir(f"{place}/tree", 0o755)
        os.chown(f"{place}/tree", uid, gid)
        return place, Planter(os.fsencode(f"{place}/tree"), uid, gid)

    def name_fixture(self, place, key):
        with open(f"{place}/digest", "w") as sink:
            sink.write(self.last_digest)
        mark(f"{place}/digest")
        os.utime(f"{place}/tree", (EPOCH, EPOCH))
        try:
            os.rename(place, f"{FIXTURES}/{safe(key)}")
        except OSError:
            # Another slot was first with the same content.
            if not os.path.isdir(f"{FIXTURES}/{key}/tree"):
                raise
            empty(place)
            os.rmdir(place)

    def plant(self, planter):
        """Receive entries until Z; a failure is told only after the whole stream was read."""
        failure = None
        kind, data = self.wire.receive()
        while kind != b"Z":
            if kind != b"E":
                raise Gone("unexpected frame")
            entry = json.loads(data)
            pieces = self.pieces(entry["size"])
            if failure is None:
                try:
                    plant_one(planter, entry, pieces)
                except (Refused, OSError) as error:
                    failure = error
            for _ in pieces:
                pass
            kind, data = self.wire.receive()
        if failure:
            raise failure
        self.last_digest = planter.digest.hexdigest()

    def pieces(self, size):
        while size > 0:
            kind, data = self.wire.receive()
            if kind != b"D" or not data or len(data) > size:
                raise Gone("content does not fit its size")
            size -= len(data)
            yield data

    def merge(self, planter, upper, lower):
        """Copy the merged view of `upper` over `lower`, as the overlay showed it, entry by entry."""
        view = {}
        for path, kind, info in parents_first(lower) if lower else ():
            view[path] = (lower, kind, info)
        for path, kind, info in parents_first(upper):
            if is_whiteout(info) or kind != "directory" or is_opaque(os.path.join(upper, path)):
                for hidden in [p for p in view if p == path or p.startswith(path + b"/")]:
                    del view[hidden]
            if not is_whiteout(info):
                view[path] = (upper, kind, info)
        for path in sorted(view):
            root, kind, info = view[path]
            copy_one(planter, root, path, kind, info)
        self.last_digest = planter.digest.hexdigest()


def plant_one(planter, entry, pieces):
    path = b64decode(entry["path"])
    if entry["kind"] == "directory":
        planter.directory(path, entry["mode"])
    elif entry["kind"] == "symlink":
        planter.symlink(path, entry["mode"], b64decode(entry["link"]))
    elif entry["kind"] == "file":
        planter.file(path, entry["mode"], pieces)
    else:
        raise Refused(f"a fixture holds no {entry['kind']}")


def copy_one(planter, root, path, kind, info):
    source = os.path.join(root, path)
    mode = stat.S_IMODE(info.st_mode) & 0o777
    if kind == "directory":
        planter.directory(path, mode)
    elif kind == "symlink":
        planter.symlink(path, 0o777, os.readlink(source))
    elif kind == "file":
        with open(os.open(source, FILE), "rb") as content:
            planter.file(path, mode, iter(lambda: content.read(CHUNK), b""))
    else:
        raise Refused(f"set-up left a {kind_of(info)} in the workspace")


if __name__ == "__main__":
    with contextlib.suppress(Gone):
        Keeper().serve()
