"""A serving container made of threads: /ping and /invocations, as SageMaker's contract has them."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.fakes.http import serving
from tests.fakes.runner import FakeContainer


def serve(container: FakeContainer) -> int:
    """Answers until SIGTERM. The model's Environment says how.

    FAIL: exits at once with this code. SLOW: never answers a ping. Otherwise a request's body is what it says to do:
    ``sick`` (no ping is answered well any more),
    ``sleep S``, ``status N``, ``large N`` (bytes), ``kind TEXT`` (content type), ``parts N`` (one each 10 ms); any
    other comes back behind TAG. PARAMETERS: the answer to /execution-parameters; ``nested``: arrays, too deep to read.
    PAUSE: seconds before each answer. DOWN: after the first question, so many seconds without any answer.
    """
    values = container.plan.environment
    container.print(f"serving {values.get('TAG', '')}")
    if "FAIL" in values:
        container.print("model_fn: no such file")
        return int(values["FAIL"])
    if "SLOW" in values:
        return container.sleep_until(container.terminated)

    down_until: list[float] = []
    is_sick = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def is_down(self, *, asked: bool) -> bool:
            """Whether the connection was cut off instead of an answer."""
            if asked and "DOWN" in values and not down_until:
                down_until.append(time.monotonic() + float(values["DOWN"]))
            if not down_until or time.monotonic() > down_until[0]:
                return False
            self.close_connection = True
            return True

        def do_GET(self) -> None:
            if self.is_down(asked=False):
                return
            if self.path == "/execution-parameters":
                wanted = values.get("PARAMETERS", "").replace("nested", "[" * 50_000)
                self._answer(200 if wanted else 404, wanted.encode())
            else:
                self._answer(503 if is_sick.is_set() else 200, b"")

        def do_POST(self) -> None:
            if self.headers.get("transfer-encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers["content-length"]))
            container.asked.append(body)
            if self.is_down(asked=True):
                return
            time.sleep(float(values.get("PAUSE", 0)))
            word, _, rest = body.decode(errors="replace").partition(" ")
            if word == "parts":
                self.send_response(200)
                self.send_header("content-type", "text/plain")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for number in range(int(rest)):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(f"{number},"), f"{number},".encode()))
                    self.wfile.flush()
                    time.sleep(0.01)
                self.wfile.write(b"0\r\n\r\n")
            elif word == "status":
                self._answer(int(rest), b"it went wrong")
            elif word == "kind":
                kind = f"HTTP/1.1 200 OK\r\ncontent-type: {rest}\r\ncontent-length: 0\r\n\r\n"
                self.wfile.write(kind.encode())
            elif word == "large":
                self._answer(200, b"x" * int(rest))
            else:
                if word == "sick":
                    is_sick.set()
                if word == "sleep":
                    time.sleep(float(rest))
                self._answer(200, values.get("TAG", "").encode() + body)

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", self.headers.get("accept", "*/*").replace("*/*", "text/plain"))
            self.send_header("content-length", str(len(body)))
            if attributes := self.headers.get("x-amzn-sagemaker-custom-attributes"):
                self.send_header("x-amzn-sagemaker-custom-attributes", attributes)
            self.end_headers()
            self.wfile.write(body)

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Whoever asked has gone: no news."""

    with serving(Quiet(("127.0.0.1", 0), Handler)) as port:
        container.address = ("127.0.0.1", port)
        try:
            while not (container.terminated.wait(0.005) or container.killed.is_set()):
                pass
        finally:
            container.address = None
    return 0
