"""Unix sockets that take orders: one JSON object a line, one answer a line."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windtunnel_local.cluster.fleet.orders import LONGEST_ORDER
from windtunnel_local.service.ground import unix_socket
from windtunnel_local.service.ground.errors import WindtunnelError

Answer = Callable[[bytes], dict[str, Any]]
_PATIENCE_S = 60.0
log = logging.getLogger("windtunnel.cluster")


def listen(path: Path, answer: Answer, owner: tuple[int, int] | None = None) -> socket.socket:
    """Listen at ``path`` with a thread for each caller. Replaces a socket that a killed process left.

    Args:
        path: in an existing folder.
        answer: makes the answer to an order's line; its ``WindtunnelError`` becomes {"error": ...}.
        owner: uid and gid of who may connect, besides root; None: this process's user.
    """
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(bound.fileno(), 0o600)  # the mode with which it is bound
        unix_socket.named(path, bound.bind)
        if owner is not None and os.getuid() == 0:
            # Who is in a cluster may put a link in its place.
            os.chown(path, *owner, follow_symlinks=False)
        bound.listen(16)
    except BaseException:
        bound.close()
        raise
    threading.Thread(target=_accept, args=(bound, answer), name=f"orders at {path.name}", daemon=True).start()
    return bound


def ask(path: Path, order: dict[str, Any], timeout_s: float = _PATIENCE_S) -> dict[str, Any]:
    """Send one order and wait for its answer.

    Raises:
        OSError: nobody listens there, or no answer came in time.
        ValueError: the bytes that came back are no answer.
    """
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(timeout_s)
        unix_socket.named(path, asked.connect)
        asked.sendall(json.dumps(order).encode() + b"\n")
        with asked.makefile("rb") as lines:
            answer = json.loads(lines.readline())
    if not isinstance(answer, dict):
        raise ValueError(f"no answer: {answer!r}")
    return answer


def answers(path: Path) -> bool:
    """Whether somebody listens there."""
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            unix_socket.named(path, asked.connect)
        except OSError:
            return False
    return True


def _accept(bound: socket.socket, answer: Answer) -> None:
    while True:
        try:
            caller, _ = bound.accept()
        except OSError:  # closed
            return
        threading.Thread(target=_serve, args=(caller, answer), name="order", daemon=True).start()


def _serve(caller: socket.socket, answer: Answer) -> None:
    try:
        with caller:
            caller.settimeout(_PATIENCE_S)
            with caller.makefile("rb") as lines:
                line = lines.readline(LONGEST_ORDER)
            if line:
                caller.sendall(json.dumps(_answer(line, answer)).encode() + b"\n")
    except OSError as error:
        log.info("a caller left: %s", error)


def _answer(line: bytes, answer: Answer) -> dict[str, Any]:
    try:
        return answer(line)
    except WindtunnelError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except OSError as error:  # in most cases the disk is full
        log.warning("an order failed: %s", error)
        return {"error": f"the order cannot be written down: {error}", "kind": "ClusterError"}
    except Exception:  # the caller hears of it, the others go on
        log.exception("an order failed")
        return {"error": "the cluster's background process failed; see fleet.log", "kind": "ClusterError"}
