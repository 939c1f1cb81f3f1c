"""The API's speed and memory beside moto's server, in one run.

    python tests/benchmarks/api.py [--jobs 1000] [--many 100000] [--seconds 4] [--moto PYTHON]

Both servers hold the same finished jobs and answer the same DescribeTrainingJob and
ListTrainingJobs requests (JSON 1.1, signed), sent by the same client: raw sockets, requests
signed beforehand, kept-alive connections as far as a server keeps them. The servers take turns.
moto is installed into an environment of its own, in the user's cache, unless `--moto` names a
Python that has it. Prints one JSON object: calls per second, their ratios, the median ms of a List of
100 among many jobs, and the servers' resident memory in MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "local_backend"), str(ROOT / "sdk")]

from tests.fakes.wire import create_request  # noqa: E402

from windtunnel_local.credentials import load_or_create  # noqa: E402
from windtunnel_local.service.ground import lifecycle  # noqa: E402
from windtunnel_local.service.ground.job import Job  # noqa: E402
from windtunnel_local.store import SqliteStore  # noqa: E402
from windtunnel_local.store.jobs import insert  # noqa: E402

MOTO = "moto[server]==5.2.5"
CONNECTIONS = 2
MANY_SAMPLES = 60
BATCH = 5000
PATIENCE_S = 60.0
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--moto", type=Path, help="a Python with moto[server]")
    arguments = parser.parse_args()
    moto_python = arguments.moto or moto_environment()
    with tempfile.TemporaryDirectory() as folder:
        result = {
            **beside_moto(Path(folder) / "few", moto_python, arguments.jobs, arguments.seconds),
            **among_many(Path(folder) / "many", arguments.many),
        }
    print(json.dumps(result, indent=2))


def moto_environment() -> Path:
    """The Python of an environment with moto, made at its first use."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "windtunnel" / "benchmarks" / MOTO.replace("[server]", "")
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        print(f"installing {MOTO} into {place}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", MOTO], check=True, stdout=sys.stderr)
        (place / "complete").touch()
    return python


# --- the two measurements ------------------------------------------------------


def beside_moto(home: Path, moto_python: Path, count: int, seconds: float) -> dict[str, Any]:
    """Calls per second of both servers, in turn, and their memory afterwards."""
    names = [f"pytorch-training-{number:06}" for number in range(count)]
    seed(home, names)
    rates: dict[str, dict[str, list[float]]] = {"ours": {}, "moto": {}}
    with windtunnel(home) as ours, moto(moto_python) as theirs:
        fill_moto(theirs, names)
        for _ in range(2):
            for who, server in (("ours", ours), ("moto", theirs)):
                describes = [
                    server.request("DescribeTrainingJob", {"TrainingJobName": n}) for n in names[::10]
                ]
                lists = [server.request("ListTrainingJobs", members) for members in LISTS]
                for call, requests in (("describe", describes), ("list", lists)):
                    rates[who].setdefault(call, []).append(rate(server, requests, seconds / 2))
        rss, moto_rss = ours.rss_mib(), theirs.rss_mib()
    best = {who: {call: max(found) for call, found in calls.items()} for who, calls in rates.items()}
    return {
        "jobs": count,
        "describe_ratio": round(best["ours"]["describe"] / best["moto"]["describe"], 2),
        "list_ratio": round(best["ours"]["list"] / best["moto"]["list"], 2),
        "describe_per_s": round(best["ours"]["describe"]),
        "moto_describe_per_s": round(best["moto"]["describe"]),
        "list_per_s": round(best["ours"]["list"]),
        "moto_list_per_s": round(best["moto"]["list"]),
        "rss_mib": rss,
        "moto_rss_mib": moto_rss,
    }


LISTS: Sequence[Mapping[str, Any]] = (
    {"MaxResults": 10},
    {"MaxResults": 10, "SortBy": "CreationTime", "SortOrder": "Descending"},
    {"MaxResults": 10, "NameContains": "training-0001"},
    {"MaxResults": 10, "StatusEquals": "Completed"},
)


def among_many(home: Path, count: int) -> dict[str, Any]:
    """How long a List of 100 takes among many jobs: the first page, later ones, and filtered ones."""
    seed(home, [f"pytorch-training-{number:06}" for number in range(count)])
    by_time = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 100}
    middle = BEGIN.timestamp() + count / 2
    filtered: Sequence[Mapping[str, Any]] = (
        {**by_time, "StatusEquals": "Failed"},
        {**by_time, "NameContains": "no-such-name"},
        {**by_time, "LastModifiedTimeAfter": middle, "NameContains": "-0000"},
        {**by_time, "SortBy": "Name", "CreationTimeBefore": BEGIN.timestamp() + 5},
        {**by_time, "SortBy": "Status", "CreationTimeAfter": middle},
    )
    with windtunnel(home) as server, closing(Connection(server.port)) as connection:
        first = median_ms(connection, [server.request("ListTrainingJobs", by_time)] * MANY_SAMPLES)
        later, token = [], None
        for page in range(min(MANY_SAMPLES, count // 100)):
            members = by_time if token is None else {**by_time, "NextToken": token}
            begun = time.perf_counter()
            answer = connection.ask(server.request("ListTrainingJobs", members))
            later.append((time.perf_counter() - begun) * 1000)
            token = (
                json.loads(answer).get("NextToken")
                if page % 2
                else jump(server, connection, by_time, page, count)
            )
        worst = {
            ", ".join(k for k in members if k not in ("MaxResults", "SortOrder")): round(
                median_ms(connection, [server.request("ListTrainingJobs", members)] * 9), 2
            )
            for members in filtered
        }
        rss = server.rss_mib()
    return {
        "many_jobs": count,
        "list_at_100k_ms": round(first, 2),
        "list_at_100k_later_pages_ms": round(statistics.median(later), 2),
        "list_at_100k_filtered_ms": worst,
        "rss_at_100k_mib": rss,
    }


def jump(
    server: Server, connection: Connection, by_time: Mapping[str, Any], page: int, count: int
) -> str | None:
    """The token of a page far down: of the jobs created before a moment."""
    before = BEGIN.timestamp() + count * (1 - page / MANY_SAMPLES)
    answer = connection.ask(server.request("ListTrainingJobs", {**by_time, "CreationTimeBefore": before}))
    found: str | None = json.loads(answer).get("NextToken")
    return found


# --- the jobs -------------------------------------------------------------------


def request_of(name: str) -> dict[str, Any]:
    """What the AWS SDK's PyTorch estimator sends, about."""
    channel = {
        "ChannelName": "training",
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": "s3://data/polarity/train",
                "S3DataDistributionType": "FullyReplicated",
            }
        },
    }
    hyperparameters = {
        "epochs": "3",
        "learning_rate": "5e-05",
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": f'"s3://data/{name}/source/sourcedir.tar.gz"',
        "sagemaker_job_name": f'"{name}"',
        "sagemaker_region": '"us-east-1"',
        "sagemaker_torch_distributed_enabled": "true",
    }
    return create_request(
        name,
        InputDataConfig=[channel],
        HyperParameters=hyperparameters,
        Environment={"NEURON_CC_FLAGS": "-O1"},
    )


def finished(name: str, number: int) -> Job:
    """A completed job, created so many seconds after the first one."""
    created = BEGIN + timedelta(seconds=number)
    life = lifecycle.begin(created)
    steps: Sequence[lifecycle.Event] = (
        lifecycle.DownloadStarted(),
        lifecycle.TrainingStarted(),
        lifecycle.UploadStarted(),
        lifecycle.Succeeded(),
    )
    for seconds, event in enumerate(steps):
        life = lifecycle.advance(life, event, created + timedelta(seconds=seconds, milliseconds=137))
    arn = f"arn:aws:sagemaker:us-east-1:000000000000:training-job/{name}"
    metric = {"MetricName": "loss", "Value": 0.25, "Timestamp": created}
    return Job(name, arn, request_of(name), life, f"s3://out/models/{name}/output/model.tar.gz", (metric,))


def seed(home: Path, names: Sequence[str]) -> None:
    """A home with finished jobs; not a thousand fsyncs, so in batches of one transaction."""
    home.mkdir(parents=True)
    store = SqliteStore(home / "state.sqlite")
    for start in range(0, len(names), BATCH):
        with store.database.transaction() as db:
            for number, name in enumerate(names[start : start + BATCH], start):
                insert(db, finished(name, number), {})
    store.close()


def fill_moto(server: Server, names: Sequence[str]) -> None:
    """The same jobs by its API."""
    with closing(Connection(server.port)) as connection:
        for name in names:
            connection.ask(server.request("CreateTrainingJob", request_of(name)))


# --- the servers ----------------------------------------------------------------


@dataclass
class Server:
    """A running server and who may ask it."""

    port: int
    pid: int
    credentials: Credentials

    def request(self, operation: str, members: Mapping[str, Any]) -> bytes:
        """A signed request, as bytes for the wire."""
        body = json.dumps(members).encode()
        request = AWSRequest("POST", f"http://127.0.0.1:{self.port}/", data=body)
        request.headers["Host"] = f"127.0.0.1:{self.port}"
        request.headers["Content-Type"] = "application/x-amz-json-1.1"
        request.headers["X-Amz-Target"] = f"SageMaker.{operation}"
        request.headers["Content-Length"] = str(len(body))
        SigV4Auth(self.credentials, "sagemaker", "us-east-1").add_auth(request)
        lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        return f"POST / HTTP/1.1\r\n{lines}\r\n".encode() + body

    def rss_mib(self) -> float:
        """Resident memory now."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return round(kib / 1024, 1)


@contextmanager
def windtunnel(home: Path) -> Iterator[Server]:
    """Our server upon a home; with the runner that needs no engine, for nothing runs."""
    environment = {
        **os.environ,
        "WINDTUNNEL_HOME": str(home),
        "WINDTUNNEL_RUNNER": "process",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "local_backend"), str(ROOT / "sdk"))),
    }
    port = free_port()
    environment["WINDTUNNEL_PORT"] = str(port)
    with running([sys.executable, "-m", "windtunnel_local", "serve"], environment, port) as pid:
        pair = load_or_create(home / "credentials.json")
        yield Server(port, pid, Credentials(pair.access_key_id, pair.secret_access_key))


@contextmanager
def moto(python: Path) -> Iterator[Server]:
    """moto's own server, as its command starts it."""
    port = free_port()
    command = [str(python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, dict(os.environ), port) as pid:
        yield Server(port, pid, Credentials("testing", "testing"))


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], port: int) -> Iterator[int]:
    """The command's process id, once its port answers."""
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, env=dict(environment), stdout=log, stderr=log) as process,
    ):
        try:
            wait_until(lambda: answers(port) or process.poll() is not None)
            if process.poll() is not None:
                log.seek(0)
                words = log.read().decode(errors="replace")[-2000:]
                raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {words}")
            time.sleep(1)  # what a server does behind its start
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)


def wait_until(condition: Callable[[], bool]) -> None:
    """Look every 50 ms."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing after {PATIENCE_S:.0f} s")
        time.sleep(0.05)


def answers(port: int) -> bool:
    """Whether something listens."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """One that nobody has now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- the client -----------------------------------------------------------------


class Connection:
    """Sends prepared bytes and reads one answer; connects again where the server hangs up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        """The answer's body; anything but 200 ends the benchmark."""
        self._socket.sendall(request)
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head, body = data[:end].lower(), data[end + 4 :]
        if b" 200" not in head[:13]:
            raise SystemExit(f"not answered: {data[:500].decode(errors='replace')}")
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(body) < length:
            body += self._more()
        if b"connection: close" in head:
            self.close()
            self._connect()
        return body

    def _more(self) -> bytes:
        chunk = self._socket.recv(1 << 18)
        if not chunk:
            raise SystemExit("the server hung up")
        return chunk

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def rate(server: Server, requests: Sequence[bytes], seconds: float) -> float:
    """Answers per second over some connections at once, after a fifth of the time to warm up."""
    begin = time.perf_counter() + seconds / 5
    end = begin + seconds

    def ask(index: int) -> int:
        count, number = 0, index
        with closing(Connection(server.port)) as connection:
            while (now := time.perf_counter()) < end:
                connection.ask(requests[number % len(requests)])
                number += 1
                count += now >= begin
        return count

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return sum(pool.map(ask, range(CONNECTIONS))) / seconds


def median_ms(connection: Connection, requests: Sequence[bytes]) -> float:
    """The median milliseconds of one request after the other."""
    taken = []
    for request in requests:
        begun = time.perf_counter()
        connection.ask(request)
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
