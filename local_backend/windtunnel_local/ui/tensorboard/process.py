"""Runs TensorBoard, as a script in a process of its own. Only this file imports TensorBoard.

It reads its settings from stdin as one line of JSON: ``path`` (sys.path), ``folder`` (removed at its end),
``logdir``, ``prefix``, ``title`` and ``idle_s``. It prints its port when it answers. It ends when stdin is closed,
which happens however the server ends, and when no request has come for ``idle_s`` seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit


def main() -> None:
    """Read the settings, and run TensorBoard until the end."""
    orders = json.loads(sys.stdin.readline())

    def leave() -> None:
        shutil.rmtree(orders["folder"], ignore_errors=True)
        os._exit(0)

    def leave_with_the_server() -> None:
        sys.stdin.read()
        leave()

    threading.Thread(target=leave_with_the_server, daemon=True).start()
    sys.path[:] = orders["path"]
    from tensorboard import program

    asked = time.monotonic()

    def server(app: Callable[..., Any], flags: Any) -> Any:
        def noted(environ: Any, start_response: Any) -> Any:
            nonlocal asked
            asked = time.monotonic()
            return app(environ, start_response)

        return program.WerkzeugServer(noted, flags)

    board = program.TensorBoard(server_class=server)
    board.configure(
        argv=[
            "tensorboard",
            *("--logdir", orders["logdir"]),
            *("--host", "127.0.0.1", "--port", "0", "--path_prefix", orders["prefix"]),
            # With load_fast, a second server would read the files, without the secret in its URLs.
            *("--load_fast", "false", "--window_title", orders["title"]),
        ]
    )
    print(urlsplit(board.launch()).port, flush=True)  # noqa: T201  what the server waits for
    # Nobody reads stderr from now on, and event files could make TensorBoard write much to it.
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 2)
    while time.monotonic() - asked < orders["idle_s"]:
        time.sleep(min(1.0, orders["idle_s"]))
    leave()


if __name__ == "__main__":
    main()
