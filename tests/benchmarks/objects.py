"""A large object through boto3's transfer manager: up, down, across `kill -9`, and the server's memory meanwhile.

    python tests/benchmarks/objects.py [--gib 2]

Starts a server of its own in a temporary home. The file goes up in parts with boto3's
default threads, comes down the same way, and is compared by SHA-256; then the server is
killed with SIGKILL right after the answer to a second upload, and what its successor
serves is compared again. Both ends share the machine. Prints one JSON object; MiB/s count
the client's time from call to return. `disk_mib_s` writes and flushes the same file plainly.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

MIB = 1 << 20
BUCKET = "bench-objects"


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), int(arguments.gib * 1024)), indent=2))


def measure(folder: Path, mib: int) -> dict[str, Any]:
    """The figures."""
    source, target, home = folder / "source", folder / "target", folder / "home"
    disk_s = write(source, mib)
    digest = sha256(source)
    server = start(home)
    try:
        s3 = client(home)
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="warm", Body=b"x" * MIB)
        s3.get_object(Bucket=BUCKET, Key="warm")["Body"].read()
        before = peak_rss_mib(server)
        completing = timed_completion(s3)
        up_s = timed(lambda: s3.upload_file(str(source), BUCKET, "big"))
        down_s = timed(lambda: s3.download_file(BUCKET, "big", str(target)))
        whole = sha256(target) == digest
        copy_s = timed(lambda: s3.copy({"Bucket": BUCKET, "Key": "big"}, BUCKET, "copied"))
        range_s = timed(lambda: one_range(s3, mib))
        grown = peak_rss_mib(server) - before
        s3.upload_file(str(source), BUCKET, "again")
        server.send_signal(signal.SIGKILL)  # right after the answer
        server.wait()
        server = start(home)
        s3 = client(home)
        s3.download_file(BUCKET, "again", str(target))
        after_kill = sha256(target) == digest
    finally:
        server.kill()
        server.wait()
    return {
        "object_gib": mib / 1024,
        "rss_growth_mib": round(grown, 1),
        "up_mib_s": round(mib / up_s),
        "down_mib_s": round(mib / down_s),
        "disk_mib_s": round(mib / disk_s),
        "complete_s": round(max(completing), 3),
        "copy_in_parts_s": round(copy_s, 2),
        "range_of_8_mib_s": round(range_s, 3),
        "whole": whole,
        "after_kill": after_kill,
    }


def timed_completion(s3: Any) -> list[float]:
    """Filled while transfers run: seconds that each CompleteMultipartUpload took."""
    took: list[float] = []
    begun: list[float] = []

    def before(**_: Any) -> None:
        begun.append(time.monotonic())

    def after(**_: Any) -> None:
        took.append(time.monotonic() - begun.pop())

    s3.meta.events.register("before-call.s3.CompleteMultipartUpload", before)
    s3.meta.events.register("after-call.s3.CompleteMultipartUpload", after)
    return took


def one_range(s3: Any, mib: int) -> None:
    """8 MiB from the middle, across the border of two parts."""
    first = mib * MIB // 2 - 4 * MIB
    answer = s3.get_object(Bucket=BUCKET, Key="big", Range=f"bytes={first}-{first + 8 * MIB - 1}")
    assert len(answer["Body"].read()) == 8 * MIB


def write(path: Path, mib: int) -> float:
    """Random bytes into a file, flushed to the disk; returns the seconds of writing and flushing."""
    seconds = 0.0
    with path.open("wb") as file:
        for _ in range(mib // 64):
            data = os.urandom(64 * MIB)
            begun = time.monotonic()
            file.write(data)
            seconds += time.monotonic() - begun
        begun = time.monotonic()
        os.fsync(file.fileno())
    return seconds + time.monotonic() - begun


def sha256(path: Path) -> str:
    """Of a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(MIB):
            digest.update(chunk)
        return digest.hexdigest()


def timed(call: Any) -> float:
    """Seconds of a call."""
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def start(home: Path) -> subprocess.Popen[bytes]:
    """A server of the home that accepts requests."""
    environment = {**os.environ, "WINDTUNNEL_HOME": str(home), "WINDTUNNEL_RUNNER": "process"}
    command = [sys.executable, "-m", "windtunnel_local", "serve"]
    with (home.parent / "backend.log").open("ab") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    note = home / "backend.json"
    while not (note.exists() and json.loads(note.read_text() or "{}").get("pid") == server.pid):
        if server.poll() is not None:
            raise SystemExit((home.parent / "backend.log").read_text())
        time.sleep(0.02)
    return server


def client(home: Path) -> Any:
    """boto3's S3 client of the home's server."""
    keys = json.loads((home / "credentials.json").read_text())
    return boto3.client(
        "s3",
        endpoint_url=json.loads((home / "backend.json").read_text())["endpoint"],
        aws_access_key_id=keys["access_key_id"],
        aws_secret_access_key=keys["secret_access_key"],
        region_name=keys["region"],
        config=Config(retries={"total_max_attempts": 1}),
    )


def peak_rss_mib(server: subprocess.Popen[bytes]) -> float:
    """The most memory that the server ever had."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
