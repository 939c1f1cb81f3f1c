"""One task of a job's Slurm job, on its node: it takes its host, waits for orders, and becomes its supervisor.

    task.py FOLDER JOB TASK NODE FIRST HOST...

JOB, TASK, NODE: Slurm's number of the job, of this task, and the node's name. FIRST: address of the first node.
Run as a script of its own (standard library only, nothing of ours is imported), from the job's folder, which all
nodes share; `job_folder` says what is in it. The tasks are numbered as the hosts are.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

_ORDERS = "orders.json"
_ORDERS_PATIENCE_S = 3600
"""Seconds to wait for orders: a server that went away before it gave them may come back."""
_POLL_S = 0.05
_CANNOT_RUN = 126

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000  # <linux/sched.h>
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000  # <linux/mount.h>


def main() -> None:
    """Stay until the job has ended."""
    folder = Path(sys.argv[1])
    job, number, node, first, *hosts = sys.argv[2:]
    host = hosts[int(number)]
    os.chdir(folder / host)  # and stays there: what is made later in its place is not this task's
    if not _claim(job):
        return  # the same job was submitted before, by a server that did not learn of it
    _write("here.json", {"node": node, "address": _address(first)})
    deadline = time.monotonic() + _ORDERS_PATIENCE_S
    # A list, as a network's file system may answer for a single name from its memory.
    while _ORDERS not in (there := os.listdir()):  # noqa: PTH208 - names
        if "here.json" not in there:
            sys.exit("the job was removed")
        if time.monotonic() > deadline:
            sys.exit(f"no orders came within {_ORDERS_PATIENCE_S} s")
        time.sleep(_POLL_S)
    if json.loads(Path(_ORDERS).read_text()).get("names"):
        try:
            _know_names(host)
        except OSError as error:
            _refuse(node, error)
            return
    os.execv(sys.executable, [sys.executable, "-I", str(folder / "supervise.py"), _ORDERS])  # noqa: S606


def _claim(job: str) -> bool:
    """Whether the folder belongs to this Slurm job: the first task to make the link claims it. Works over NFS."""
    claimed, draft = Path("..", "claimed"), Path(f"claim-{job}")
    draft.write_text(job)
    try:
        os.link(draft, claimed)
    except FileExistsError:
        return claimed.read_text() == job
    return True


def _address(first: str) -> str:
    """The address at which other nodes reach this one: its own on the route to the first node."""
    family = socket.AF_INET6 if ":" in first else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as way:
        way.connect((first, 9))  # nothing is sent
        address: str = way.getsockname()[0]
        return address


def _know_names(host: str) -> None:
    """Give this process and its children the host's name, and let all hosts' names resolve. Raises ``OSError``.

    Uses mount and host name namespaces, as a container does. Without root this needs a user namespace, in which
    no other user exists.
    """
    names = Path("hosts")
    names.write_text(Path("names").read_text() + Path("/etc/hosts").read_text())
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()

    def must(result: int) -> None:
        if result:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    must(libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS | (_CLONE_NEWUSER if user else 0)))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    must(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    must(libc.mount(str(names).encode(), b"/etc/hosts", None, _MS_BIND, None))
    socket.sethostname(host)


def _refuse(node: str, error: OSError) -> None:
    """End before the job began."""
    Path("output.log").write_text(
        f"Windtunnel: {node} gives a job no mounts of its own ({error}), and without them the hosts of a job do not"
        " find each other by name. Have it allow user namespaces (sysctl user.max_user_namespaces and, on Ubuntu,"
        " kernel.apparmor_restrict_unprivileged_userns=0), or run the job on one instance.\n"
    )
    now = time.time()
    _write("run.json", {"pid": os.getpid(), "started": now})
    _write("exit.json", {"exit_code": _CANNOT_RUN, "finished": now})


def _write(name: str, content: dict[str, Any]) -> None:
    draft = Path(name).with_suffix(".tmp")
    draft.write_text(json.dumps(content))
    draft.replace(name)


if __name__ == "__main__":
    main()
