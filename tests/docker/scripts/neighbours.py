"""A host that says whom it has found by the names of its job's hosts, until it was told to end."""

import contextlib
import json
import os
import socket
import time

told = os.path.join(os.environ["SM_CHANNEL_END"], "now")
found = {host: set() for host in json.loads(os.environ["SM_HOSTS"])}
over = False
while not over:
    over = os.path.exists(told)  # before it looks for the last time
    for host, addresses in found.items():
        with contextlib.suppress(OSError):  # the other one was told to end, too
            addresses.update(entry[4][0] for entry in socket.getaddrinfo(host, None))
    time.sleep(0.1)
# One write: the toolkit takes several for several lines.
print(f"SAW {json.dumps({host: sorted(addresses) for host, addresses in found.items()})}", flush=True)
