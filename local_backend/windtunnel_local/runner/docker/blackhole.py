"""Runs for a moment in the network of a job's container, with the right to change it.

    python3 -IS -c TEXT-OF-THIS-FILE ADDRESS...

Nothing that the container sends to these IPv4 addresses leaves it. Knows nothing but the standard library.
"""

import os
import socket
import struct
import sys

_NEW_ROUTE, _DESTINATION = 24, 1  # linux/rtnetlink.h: RTM_NEWROUTE, RTA_DST
_FLAGS = 0x1 | 0x4 | 0x100 | 0x400  # request, acknowledge, replace, create
# Of one IPv4 address (32 bits), in the main table (254), static (4), for all scopes (0), RTN_BLACKHOLE (6).
_ROUTE = (socket.AF_INET, 32, 0, 0, 254, 4, 0, 6, 0)


def main(address: str) -> None:
    """Raises OSError where the kernel refuses the route."""
    attribute = struct.pack("=HH", 8, _DESTINATION) + socket.inet_aton(address)
    message = struct.pack("=8BI", *_ROUTE) + attribute
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(message), _NEW_ROUTE, _FLAGS, 1, 0) + message)
        (error,) = struct.unpack_from("=i", kernel.recv(4096), 16)
    if error:
        raise OSError(-error, os.strerror(-error))


if __name__ == "__main__":
    for one in sys.argv[1:]:
        main(one)
