"""Add IPv4 addresses to this network namespace's loopback interface: ``local_addresses.py ADDRESS...``.

Used for the address of EC2's metadata service, so that requests to it stay in the node. Otherwise a node on an EC2
instance would reach the metadata, and so the role, of that instance. Needs CAP_NET_ADMIN.
"""

import os
import socket
import struct
import sys

_NEW_ADDRESS, _LOCAL = 20, 2  # linux/rtnetlink.h: RTM_NEWADDR; linux/if_addr.h: IFA_LOCAL
_FLAGS = 0x1 | 0x4 | 0x100 | 0x400  # request, acknowledge, replace, create
_OF_HOST = 254  # RT_SCOPE_HOST


def add(address: str) -> None:
    """Add one address to ``lo``. Raises OSError if the kernel refuses it."""
    header = struct.pack("=4BI", socket.AF_INET, 32, 0, _OF_HOST, socket.if_nametoindex("lo"))
    message = header + struct.pack("=HH", 8, _LOCAL) + socket.inet_aton(address)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(message), _NEW_ADDRESS, _FLAGS, 1, 0) + message)
        (error,) = struct.unpack_from("=i", kernel.recv(4096), 16)
    if error:
        raise OSError(-error, os.strerror(-error))


if __name__ == "__main__":
    for one in sys.argv[1:]:
        add(one)
