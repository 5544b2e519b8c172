"""A registry of images in this process: enough of the API for an engine to pull from it, or to fail to."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
LIST = "application/vnd.docker.distribution.manifest.list.v2+json"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass
class Registry:
    """Manifests by `repository:tag` or digest, blobs by digest. With a `status` it answers only that."""

    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    status: int = 200
    silent: threading.Event | None = None
    """If set: every request waits for it, and then the registry hangs up."""
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.requests.append(self.path)
                if registry.silent is not None:
                    registry.silent.wait(60)
                    self.close_connection = True
                    return
                kind, data = registry.answer(self.path)
                self.send_response(registry.status if registry.status != 200 else 200 if kind else 404)
                self.send_header("Content-Type", kind or "application/json")
                self.send_header("Content-Length", str(len(data)))
                if kind in (MANIFEST, LIST):
                    self.send_header("Docker-Content-Digest", digest_of(data))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def name(self) -> str:
        """Host and port, as the first part of an image's name."""
        return f"127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> tuple[str, bytes]:
        if self.status == 429:
            return "", json.dumps({"errors": [{"code": "TOOMANYREQUESTS", "message": "slow down"}]}).encode()
        if path == "/v2/":
            return "application/json", b"{}"
        repository, _, last = path.removeprefix("/v2/").rpartition("/")
        repository, _, kind = repository.rpartition("/")
        if kind == "blobs" and last in self.blobs:
            return "application/octet-stream", self.blobs[last]
        found = self.manifests.get(last) or self.manifests.get(f"{repository}:{last}")
        error = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
        return found or ("", json.dumps(error).encode())

    def put(self, reference: str, architecture: str, layers: list[bytes], config: dict[str, Any]) -> str:
        """Offer an image made of uncompressed layers; returns the digest of its manifest."""
        zipped = [gzip.compress(layer, 1, mtime=0) for layer in layers]
        body = {
            "architecture": architecture,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]},
            "history": [{"created_by": "test"} for _ in layers],
        }
        config_bytes = json.dumps(body).encode()
        for blob in (config_bytes, *zipped):
            self.blobs[digest_of(blob)] = blob
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {
                "mediaType": "application/vnd.docker.container.image.v1+json",
                "size": len(config_bytes),
                "digest": digest_of(config_bytes),
            },
            "layers": [
                {
                    "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                    "size": len(blob),
                    "digest": digest_of(blob),
                }
                for blob in zipped
            ],
        }
        return self._offer(reference, MANIFEST, manifest)

    def put_index(self, reference: str, manifest: str, architecture: str) -> str:
        """Offer an index whose only entry is `manifest`, for `architecture`."""
        size = len(self.manifests[manifest][1])
        platform = {"os": "linux", "architecture": architecture}
        entry = {"mediaType": MANIFEST, "digest": manifest, "size": size, "platform": platform}
        return self._offer(reference, LIST, {"schemaVersion": 2, "mediaType": LIST, "manifests": [entry]})

    def _offer(self, reference: str, kind: str, body: dict[str, Any]) -> str:
        data = json.dumps(body).encode()
        self.manifests[reference] = self.manifests[digest_of(data)] = (kind, data)
        return digest_of(data)

    def close(self) -> None:
        if self.silent is not None:
            self.silent.set()
        self.server.shutdown()
        self.server.server_close()


def layer(files: dict[str, bytes]) -> bytes:
    """A layer that holds these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
