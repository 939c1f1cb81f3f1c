"""Which user's process is at the other end of a connection to loopback.

Cookies are not bound to a port, so the browser may send our cookie to another user's server on this machine; and the
list of processes shows the URL that a browser was opened with. That user can use neither, because the kernel tells
the owner of each connection (Linux's sock_diag: one socket by its addresses, in some 20 µs; see sock_diag(7)).
"""

from __future__ import annotations

import os
import socket
import struct

from starlette.types import Scope

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_WHAT = struct.Struct("=BBBBI")
_ENDS = struct.Struct("!HH4s12x4s12x")
_NO_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_UID = _HEADER.size + 4 + _ENDS.size + len(_NO_COOKIE) + 12
_ANY_STATE = 0xFFFFFFFF
_LONGEST = 4096
_NOBODY = 0xFFFFFFFF
"""The owner of an end that is closed already: unknown. The kernel says root; nobody reads the answer anyway."""


def is_a_stranger(scope: Scope) -> bool:
    """Whether the request came from a process of another user, neither root nor the user of this server.

    False also if that is unknown, as on other systems than Linux.
    """
    client, server = scope.get("client"), scope.get("server")
    if client is None or server is None or server[1] is None:
        return False
    uid = uid_of((client[0], client[1]), (server[0], server[1]))
    return uid is not None and uid not in (0, os.getuid())


def uid_of(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The user id of the client's end of an IPv4 connection within this machine; None if unknown."""
    if not hasattr(socket, "AF_NETLINK"):
        return None
    ends = _ENDS.pack(client[1], server[1], socket.inet_aton(client[0]), socket.inet_aton(server[0]))
    body = _WHAT.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + ends + _NO_COOKIE
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 0, 0) + body)
            answer = kernel.recv(_LONGEST)
    except OSError:
        return None
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _BY_FAMILY:
        return None
    uid, inode = struct.unpack_from("=II", answer, _UID)
    return uid if inode else _NOBODY
