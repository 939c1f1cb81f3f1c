"""A model on an engine and a server of a test's own, which may be killed."""

from __future__ import annotations

import time

from tests.fakes.archive import archive
from tests.faults.stage import Stage

MODEL, BUCKET, IMAGE = "e", "models", "windtunnel-faults-serve:test"
SERVE = r"""#!/usr/bin/python3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import signal, sys, time

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    def log_message(self, *_): pass
    def do_GET(self): self.answer(b"")
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.02)
        self.answer(body)
    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
"""


class ServingStage(Stage):
    """A model that answers with what it is asked, in the engine's network."""

    def _prepare(self) -> None:
        self.engine.make_image(IMAGE, {"/usr/local/bin/serve": SERVE})
        self._stack.enter_context(self.engine.network())
        self.backend.start()
        call = self.backend.call
        call("s3", "create_bucket", Bucket=BUCKET)
        call("s3", "put_object", Bucket=BUCKET, Key="model.tar.gz", Body=archive(("weights", b"")))
        container = {"Image": IMAGE, "ModelDataUrl": f"s3://{BUCKET}/model.tar.gz"}
        role = "arn:aws:iam::000000000000:role/r"
        call("sagemaker", "create_model", ModelName=MODEL, PrimaryContainer=container, ExecutionRoleArn=role)

    def kill(self, kind: str) -> None:
        """SIGKILL, and start what was killed again."""
        if kind == "container":
            (container,) = self.engine.client().api.containers()
            self.engine.client().api.kill(container["Id"], "SIGKILL")
        elif kind == "server":
            self.backend.kill()
            time.sleep(self.rng.uniform(0, 0.5))
            self.backend.start()
        else:
            self.engine.kill()
            time.sleep(self.rng.uniform(0, 1.0))
            self.engine.start(live_restore=kind == "engine with live-restore")

    def remains(self) -> list[str]:
        """Containers and folders that there are."""
        containers = [str(c["Names"]) for c in self.engine.client().api.containers(all=True)]
        return containers + [str(path) for path in self.backend.home.glob("jobs/*")]
