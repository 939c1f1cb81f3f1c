"""On an EC2 instance: check whether a job in a container could fetch the keys of the instance's role.

The instance's metadata service is asked as from a container, one hop further away: the kernel drops answers
that would not have lived for that hop (IP_MINTTL).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from windtunnel_local.runner.runner_kind import Check

METADATA = ("169.254.169.254", 80)
_DMI = Path("/sys/class/dmi/id")
_IP_MINTTL = 21  # linux/in.h; Python has no name for it
_PATIENCE_S = 1.0
_TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105  a header's name
_ROLE = "/latest/meta-data/iam/security-credentials/"


def instance_role_checks(hops: int, dmi: Path = _DMI, metadata: tuple[str, int] = METADATA) -> list[Check]:
    """One check on an EC2 instance, none elsewhere. Blocks for 3 s at most.

    Args:
        hops: network hops from a container to this machine; 0 if the engine connects from here.
        dmi: what the firmware says of this machine.
        metadata: where the metadata service is.
    """
    if _read(dmi / "sys_vendor") != "Amazon EC2":
        return []
    role = _role_seen(hops, metadata)
    if role is None:
        return [Check("instance role", True, "no container gets its keys")]
    limits = "--http-put-response-hop-limit 1" if hops else "--http-endpoint disabled"
    return [
        Check(
            "instance role",
            False,
            f"the code of any job can fetch the keys of this instance's role, {role}, from {metadata[0]}",
            f"Run `aws ec2 modify-instance-metadata-options --instance-id {_read(dmi / 'board_asset_tag')}"
            f" --http-tokens required {limits}`, or take the role from the instance.",
        )
    ]


def _role_seen(hops: int, metadata: tuple[str, int]) -> str | None:
    """The name of the role whose keys can be fetched, with a token or, if the instance allows it, without."""
    token = _ask(hops, metadata, "PUT", "/latest/api/token", {f"{_TOKEN}-ttl-seconds": "60"})
    return _ask(hops, metadata, "GET", _ROLE, {_TOKEN: token} if token else {})


def _ask(
    hops: int, metadata: tuple[str, int], method: str, path: str, headers: Mapping[str, str]
) -> str | None:
    connection = HTTPConnection(*metadata)
    with contextlib.closing(connection), contextlib.suppress(OSError, HTTPException):
        connection.sock = socket.socket()
        connection.sock.settimeout(_PATIENCE_S)
        connection.sock.setsockopt(socket.IPPROTO_IP, _IP_MINTTL, 1 + hops)
        connection.sock.connect(metadata)
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read(4096).decode(errors="replace").strip()
        return text if answer.status == 200 and text else None
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
