"""The instance metadata service of a simulated instance: http://169.254.169.254, versions 1 and 2.

Paths and forms: Amazon EC2 User Guide, "Instance metadata categories" and "How IMDSv2 works". The values are
simulated, and say so where their form allows it. Other paths give 404 at once, those of credentials too: a simulated
instance has no role.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ADDRESS = "169.254.169.254"
_TTL = "X-aws-ec2-metadata-token-ttl-seconds"
_TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105 - the header's name
_LONGEST_TTL_S = 21_600
_ACCOUNT = "000000000000"


@dataclass(frozen=True)
class Facts:
    """Properties of the simulated instance."""

    instance_id: str
    instance_type: str
    availability_zone: str
    local_ipv4: str

    @property
    def region(self) -> str:
        """The region of the availability zone."""
        return self.availability_zone.rstrip("abcdef")

    def paths(self) -> dict[str, str]:
        """All values, by path."""
        private_dns = f"ip-{self.local_ipv4.replace('.', '-')}.{self.region}.compute.internal"
        document = {
            "accountId": _ACCOUNT,
            "architecture": "x86_64",
            "availabilityZone": self.availability_zone,
            "imageId": "ami-0simulated0000000",
            "instanceId": self.instance_id,
            "instanceType": self.instance_type,
            "privateIp": self.local_ipv4,
            "region": self.region,
            "version": "2017-09-30",
        }
        below_latest = {
            "meta-data/ami-id": "ami-0simulated0000000",
            "meta-data/ami-launch-index": "0",
            "meta-data/ami-manifest-path": "(unknown)",
            "meta-data/hostname": private_dns,
            "meta-data/instance-action": "none",
            "meta-data/instance-id": self.instance_id,
            "meta-data/instance-life-cycle": "on-demand",
            "meta-data/instance-type": self.instance_type,
            "meta-data/local-hostname": private_dns,
            "meta-data/local-ipv4": self.local_ipv4,
            "meta-data/placement/availability-zone": self.availability_zone,
            "meta-data/placement/region": self.region,
            "meta-data/reservation-id": "r-0simulated0000000",
            "meta-data/services/domain": "amazonaws.com",
            "meta-data/services/partition": "aws",
            "dynamic/instance-identity/document": json.dumps(document, indent=2),
        }
        return {f"latest/{path}": value for path, value in below_latest.items()}


def simulated_id(hostname: str, mounts: str = "") -> str:
    """The instance id of this container, made from the container's id; the cluster's commands list the same one.

    Outside of a container: an id made from the host's name, which no real instance has. ``mounts``: content of
    /proc/self/mountinfo; the engine mounts files from a folder named after the container's id.
    """
    container = re.search(r"/containers/([0-9a-f]{17})[0-9a-f]{47}/hostname ", mounts)
    return (
        f"i-{container[1]}"
        if container
        else f"i-0simulated{hashlib.sha256(hostname.encode()).hexdigest()[:8]}"
    )


def answer(paths: Mapping[str, str], path: str) -> str | None:
    """The value at a path, or a list of the names in a folder; None if there is neither."""
    wanted = path.strip("/")
    if wanted in paths:
        return paths[wanted]
    folder = f"{wanted}/" if wanted else ""
    inside = [name[len(folder) :] for name in paths if name.startswith(folder)]
    names = {name.partition("/")[0] + ("/" if "/" in name else "") for name in inside}
    return "\n".join(sorted(names)) or None


class Service(ThreadingHTTPServer):
    """The HTTP server of one instance's metadata."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], facts: Facts) -> None:
        """Listen at ``address``. Raises OSError if the address is not this host's, or is in use."""
        self.paths = facts.paths()
        self.tokens: dict[str, float] = {}
        """When each token expires, by the monotonic clock."""
        super().__init__(address, _Request)

    def new_token(self, seconds: int) -> str:
        """Make a token that is valid for so many seconds. Forgets expired tokens."""
        now = time.monotonic()
        for ended in [token for token, end in list(self.tokens.items()) if end < now]:
            self.tokens.pop(ended, None)
        token = secrets.token_urlsafe(40)
        self.tokens[token] = now + seconds
        return token


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service
    timeout = 60

    def do_PUT(self) -> None:
        """Answer a request for a token (IMDSv2)."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seconds = self.headers.get(_TTL, "")
        if self.path != "/latest/api/token":
            self._send(404, "Not Found")
        elif not seconds.isdecimal() or not 1 <= int(seconds) <= _LONGEST_TTL_S:
            self._send(400, "Bad Request")
        else:
            self._send(200, self.server.new_token(int(seconds)), **{_TTL: seconds})

    def do_GET(self) -> None:
        """Answer with a value or a folder's names, to requests with a valid token (version 2) or none (version 1)."""
        token = self.headers.get(_TOKEN)
        found = answer(self.server.paths, self.path.partition("?")[0])
        if token is not None and self.server.tokens.get(token, 0) < time.monotonic():
            self._send(401, "Unauthorized")
        elif found is None:
            self._send(404, "Not Found")
        else:
            self._send(200, found)

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def log_message(self, *_: object) -> None:
        """Log nothing: the node's log is for Slurm's daemons."""

    def _send(self, code: int, text: str, **headers: str) -> None:
        body = text.encode()
        self.send_response(code)
        for name, value in {"Content-Type": "text/plain", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """The Server header: EC2's name, and that it is simulated."""
        return "EC2ws (simulated by Windtunnel)"


def main(argv: list[str] | None = None) -> int:
    """Serve until the process is ended. Returns 1 if it cannot listen at the address."""
    hostname = socket.gethostname()
    parser = argparse.ArgumentParser(
        prog="windtunnel-metadata", description="Serve the metadata of a simulated instance."
    )
    parser.add_argument("--instance-type", required=True, help="such as trn1.32xlarge")
    parser.add_argument("--availability-zone", default="us-west-2d")
    parser.add_argument("--address", default=ADDRESS)
    given = parser.parse_args(argv)
    instance_id = simulated_id(hostname, Path("/proc/self/mountinfo").read_text())
    instance_type = given.instance_type.removeprefix("ml.")
    facts = Facts(instance_id, instance_type, given.availability_zone, _own_address(hostname))
    try:
        service = Service((given.address, 80), facts)
    except OSError as error:
        print(
            f"windtunnel-metadata: {given.address}:80 cannot be served: {error}. "
            "The container must have that address.",
            file=sys.stderr,
        )
        return 1
    with service:
        service.serve_forever()
    return 0


def _own_address(hostname: str) -> str:
    try:
        return socket.gethostbyname(hostname)
    except OSError:
        return "127.0.0.1"


if __name__ == "__main__":
    raise SystemExit(main())
