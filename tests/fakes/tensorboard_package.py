"""A package named tensorboard, whose pages are JSON: what it was called with, and the files that it sees."""

from __future__ import annotations

from pathlib import Path

PROGRAM = '''
"""As TensorBoard's own module, as far as the backend uses it."""
import json, os, threading
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments): pass

def WerkzeugServer(app, flags):
    return make_server(flags["--host"], int(flags["--port"]), app, handler_class=Quiet)

class TensorBoard:
    def __init__(self, server_class):
        self.server_class = server_class

    def configure(self, argv):
        self.flags = dict(zip(argv[1::2], argv[2::2]))

    def launch(self):
        root, prefix = Path(self.flags["--logdir"]), self.flags["--path_prefix"]
        def app(environ, start_response):
            found = environ["PATH_INFO"] == prefix + "/"
            start_response("200 OK" if found else "404 Not Found", [("Content-Type", "application/json")])
            files = {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}
            told = {"files": files, "flags": self.flags, "pid": os.getpid()} if found else None
            return [json.dumps(told).encode()]
        server = self.server_class(app, self.flags)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}{prefix}/"
'''


def install(packages: Path) -> Path:
    """Write it into a folder of packages; returns its own."""
    folder = packages / "tensorboard"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "program.py").write_text(PROGRAM)
    return folder
