"""Give this network namespace's loopback more IPv4 addresses: ``local_addresses.py ADDRESS...``.

For the address of EC2's metadata service: what is asked there is answered here, or refused at once. Without it
a node of a cluster on a cloud's machine would reach that machine's own role. Needs CAP_NET_ADMIN.
"""

import os
import socket
import struct
import sys

_NEW_ADDRESS, _LOCAL = 20, 2  # linux/rtnetlink.h: RTM_NEWADDR; linux/if_addr.h: IFA_LOCAL
_FLAGS = 0x1 | 0x4 | 0x100 | 0x400  # request, acknowledge, replace, create
_OF_HOST = 254  # RT_SCOPE_HOST


def add(address: str) -> None:
    """Raises OSError where the kernel refuses it."""
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
