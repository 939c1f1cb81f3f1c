#!/usr/bin/python3 -IS
"""Slurm's ResumeProgram and SuspendProgram, chosen by the name it is called by: ``resume NODES``, ``suspend NODES``.

Passes the order to the cluster's background process, which makes and removes nodes and listens on a socket in a
mounted folder. If that process does not answer, the order is repeated for two minutes. After that the process finds
the nodes' states in Slurm when it runs again.
"""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

_SOCKET = "/opt/windtunnel/orders/socket"
_PATIENCE_S = 120.0


def ask(order: dict[str, object]) -> dict[str, object]:
    """Send one order to the background process, and return its answer."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(_PATIENCE_S)
        asked.connect(_SOCKET)
        asked.sendall(json.dumps(order).encode() + b"\n")
        answer: dict[str, object] = json.loads(asked.makefile().readline())
        return answer


def main(action: str, nodes: str) -> int:
    """Send the order until it is answered, for `_PATIENCE_S` at most. Returns the exit code."""
    names = subprocess.run(
        ["/usr/bin/scontrol", "show", "hostnames", nodes], stdout=subprocess.PIPE, check=True
    )
    order = {"do": action, "nodes": names.stdout.decode().split()}
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            answer = ask(order)
        except (OSError, ValueError) as error:
            answer = {"error": str(error)}
            if time.monotonic() < deadline:
                time.sleep(1)
                continue
        if "error" in answer:
            print(f"{action} {nodes}: {answer['error']}", file=sys.stderr)  # noqa: T201  for slurmctld's log
            return 1
        return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[0]).name, sys.argv[1]))
