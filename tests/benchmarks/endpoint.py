"""What an endpoint adds to its container: seconds until the first answer, and time of each request.

    python tests/benchmarks/endpoint.py [--deploys 5] [--requests 1000] [--clients 50] [--seconds 3] [--rounds 5]
        [--local-mode ROUNDS]

The handler returns what it gets; a second one computes for 5 ms first. The same container is asked at its own address
and through InvokeEndpoint, by the same client: a process of its own with raw sockets, the request signed beforehand, in
turns. Prints one JSON object: seconds that CreateEndpoint adds to `docker run` until /ping answers (medians),
milliseconds that InvokeEndpoint adds to a request of one client, and requests a second of many clients with their
ratio, of both handlers, and what the client itself took of a processor. Needs Docker and the training image.

With --local-mode the SageMaker SDK v2's local mode deploys the same model and handler from the same image, in turns
with ours: each SDK's own deploy(), and predict() of so many threads of one process. Needs docker compose and port
8080; the package is that of tests/clients, installed on first use.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import http.client
import io
import json
import multiprocessing
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import uvloop
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "local_backend"), str(ROOT / "sdk")]

from clients import client_variables, interpreter  # noqa: E402  beside this file

from windtunnel import LocalSession  # noqa: E402

NAME, BUCKET, BODY = "echo", "models", b'{"inputs": [1, 2, 3]}'
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312"
LOCAL_IMAGE = os.environ.get("WINDTUNNEL_IMAGE", "windtunnel-training:0.1.0")
HANDLER = """
import time

def model_fn(folder):
    return 1

def transform_fn(model, body, kind, accept):
    until = time.perf_counter() + {work_s}
    while time.perf_counter() < until:
        pass
    return body
"""
WORK_S = 0.005
PING_EVERY_S = 0.02
PATIENCE_S = 120.0
LOCAL_MODE_PATIENCE_S = 300.0


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deploys", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--local-mode", type=int, default=0, metavar="ROUNDS", help="SDK v2's, beside ours (0)"
    )
    options = parser.parse_args()
    compose = compose_version() if options.local_mode else ""
    with tempfile.TemporaryDirectory(prefix="windtunnel-endpoint-") as folder:
        os.environ["WINDTUNNEL_HOME"] = f"{folder}/home"
        session = LocalSession()
        try:
            figures = measured(session, Path(folder), options)
            if options.local_mode:
                figures["local_mode"] = beside_local_mode(session, Path(folder), options, compose)
            print(json.dumps(figures))
        finally:
            session.backend.stop()


def measured(session: LocalSession, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    model = folder / "model"
    (model / "code").mkdir(parents=True)
    (model / "code" / "inference.py").write_text(HANDLER.format(work_s=0))
    endpoint = session.endpoint()
    keys = json.loads((session.home / "credentials.json").read_text())
    boto = boto3.Session(keys["access_key_id"], keys["secret_access_key"], region_name=session.region)
    sagemaker = boto.client("sagemaker", endpoint_url=endpoint)
    s3 = boto.client("s3", endpoint_url=endpoint)
    store(s3, 0)
    describe_model(sagemaker)
    bare, deployed = [], []
    for _ in range(options.deploys):
        bare.append(seconds_of_docker_run(model))
        deployed.append(seconds_of_deploy(sagemaker))
    deployed.append(seconds_of_deploy(sagemaker, keep=True))
    try:
        direct = (container_address(), plain_request())
        through = signed_request(boto, endpoint)
        one = [asyncio.run(latencies_ms(*way, options.requests)) for way in (direct, through) * 2]
        echo = rates(direct, through, options)
    finally:
        sagemaker.delete_endpoint(EndpointName=NAME)
        await_gone(sagemaker)
    store(s3, WORK_S)
    seconds_of_deploy(sagemaker, keep=True)
    try:
        work = rates((container_address(), plain_request()), through, options)
    finally:
        sagemaker.delete_endpoint(EndpointName=NAME)
        await_gone(sagemaker)
    asked, invoked = sorted(one[0] + one[2]), sorted(one[1] + one[3])
    return {
        "deploy_added_s": round(statistics.median(deployed) - statistics.median(bare), 2),
        "docker_run_s": round(statistics.median(bare), 2),
        "overhead_ms_p50": round(statistics.median(invoked) - statistics.median(asked), 2),
        "overhead_ms_p99": round(at(invoked, 0.99) - at(asked, 0.99), 2),
        "direct_ms_p50": round(statistics.median(asked), 2),
        **echo,
        **{f"{name}_of_5_ms": value for name, value in work.items()},
        "clients": options.clients,
    }


def compose_version() -> str:
    """Of what SDK v2's local mode starts containers with: Docker's plugin, else docker-compose."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            version = [*command, "version", "--short"]
            done = subprocess.run(version, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if done.returncode == 0:
                return done.stdout.strip()
    raise SystemExit(
        "--local-mode: SDK v2's local mode needs docker compose. On Debian: apt install docker-compose"
    )


def beside_local_mode(
    session: LocalSession, folder: Path, options: argparse.Namespace, compose: str
) -> dict[str, Any]:
    """Medians of SDK v2's local mode and of ours, in turns."""
    with tarfile.open(folder / "model.tar.gz", "w:gz") as archive:
        archive.add(folder / "model", "")
    variables = client_variables(session, folder)
    ways = {"sagemaker": (interpreter("sagemaker_v2"), LOCAL_IMAGE), "windtunnel": (sys.executable, IMAGE)}
    load = [str(options.clients), str(options.seconds)]
    said: dict[str, list[list[str]]] = {sdk: [] for sdk in ways}
    for _ in range(options.local_mode):
        for sdk, (python, image) in ways.items():
            said[sdk].append(deployed_and_asked(python, [sdk, str(folder), image, *load], variables))
    return {
        "deploy_s": {sdk: median_of(results, 0, 1) for sdk, results in said.items()},
        "requests_per_s": {sdk: median_of(results, 1, 0) for sdk, results in said.items()},
        "versions": {**{sdk: results[0][2] for sdk, results in said.items()}, "docker compose": compose},
        "rounds": options.local_mode,
    }


def deployed_and_asked(python: str, arguments: list[str], variables: dict[str, str]) -> list[str]:
    """Seconds of deploy(), requests a second, the SDK's version."""
    script = Path(__file__).parent / "scripts" / "deploy_and_ask.py"
    project = f"windtunnel-endpoint-{os.getpid()}"
    try:
        done = subprocess.run(
            [python, str(script), *arguments],
            env={**variables, "COMPOSE_PROJECT_NAME": project},
            capture_output=True,
            text=True,
            check=False,
            timeout=LOCAL_MODE_PATIENCE_S,
        )
    finally:
        # Local mode leaves its container, ended, and its network.
        mine = ["--filter", f"label=com.docker.compose.project={project}"]
        listed = subprocess.run(
            ["docker", "ps", "--all", "--quiet", *mine], stdout=subprocess.PIPE, text=True
        )
        subprocess.run(["docker", "rm", "--force", *listed.stdout.split()], capture_output=True)
        subprocess.run(["docker", "network", "prune", "--force", *mine], capture_output=True)
    found = re.search(r"RESULT (\S+ \S+ \S+)$", done.stdout, flags=re.MULTILINE)  # behind a progress bar
    if done.returncode or not found:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return found[1].split()


def median_of(results: list[list[str]], index: int, digits: int) -> float:
    """Of one figure of all rounds."""
    return round(statistics.median(float(result[index]) for result in results), digits)


def describe_model(sagemaker: Any) -> None:
    """The model and the configuration of its endpoint."""
    sagemaker.create_model(
        ModelName=NAME,
        PrimaryContainer={"Image": IMAGE, "ModelDataUrl": f"s3://{BUCKET}/model.tar.gz"},
        ExecutionRoleArn="arn:aws:iam::000000000000:role/r",
    )
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": NAME,
        "InstanceType": "ml.c5.xlarge",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=NAME, ProductionVariants=[variant])


Way = tuple[tuple[str, int], bytes]


def rates(direct: Way, through: Way, options: argparse.Namespace) -> dict[str, Any]:
    """Requests a second both ways: medians, and the median of the ratios of neighbours."""
    pairs = [
        [throughput(*way, options.clients, options.seconds) for way in (direct, through)]
        for _ in range(options.rounds)
    ]
    return {
        "requests_per_s": {
            name: round(statistics.median(pair[index][0] for pair in pairs))
            for index, name in enumerate(("direct", "invoked"))
        },
        "requests_per_s_ratio": round(statistics.median(pair[1][0] / pair[0][0] for pair in pairs), 2),
        "client_processor": round(statistics.median(pair[1][1] for pair in pairs), 2),
    }


def store(s3: Any, work_s: float) -> None:
    """The model's archive."""
    packed, handler = io.BytesIO(), HANDLER.format(work_s=work_s).encode()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("code/inference.py")
        member.size = len(handler)
        archive.addfile(member, io.BytesIO(handler))
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="model.tar.gz", Body=packed.getvalue())


def seconds_of_docker_run(model: Path) -> float:
    """From `docker run` to the first good answer to a ping."""
    begun = time.monotonic()
    command = ["docker", "run", "--detach", "--init", "--publish", "127.0.0.1::8080"]
    command += ["--volume", f"{model}:/opt/ml/model:ro", LOCAL_IMAGE, "serve"]
    container = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    try:
        shown = subprocess.run(
            ["docker", "port", container], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        port = int(shown.rpartition(":")[2])
        while time.monotonic() < begun + PATIENCE_S:
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
                connection.request("GET", "/ping")
                if connection.getresponse().status == 200:
                    return time.monotonic() - begun
            time.sleep(PING_EVERY_S)
        raise SystemExit("the container never answered")
    finally:
        subprocess.run(["docker", "rm", "--force", container], check=True, stdout=subprocess.DEVNULL)


def seconds_of_deploy(sagemaker: Any, *, keep: bool = False) -> float:
    """From CreateEndpoint to InService."""
    begun = time.monotonic()
    sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
    while (described := sagemaker.describe_endpoint(EndpointName=NAME))["EndpointStatus"] == "Creating":
        time.sleep(PING_EVERY_S)
    took = time.monotonic() - begun
    if described["EndpointStatus"] != "InService":
        raise SystemExit(described.get("FailureReason"))
    if not keep:
        sagemaker.delete_endpoint(EndpointName=NAME)
        await_gone(sagemaker)
    return took


def await_gone(sagemaker: Any) -> None:
    """Until its containers are removed."""
    while sagemaker.list_endpoints()["Endpoints"]:
        time.sleep(0.1)


def container_address() -> tuple[str, int]:
    """Where the endpoint's container is asked directly: by itself, since the engine's proxy at its port costs too."""
    ids = ["docker", "ps", "--quiet", "--filter", f"label=windtunnel.endpoint={NAME}"]
    container = subprocess.run(ids, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[0]
    form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    shown = ["docker", "inspect", "--format", form, container]
    return subprocess.run(shown, check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), 8080


def plain_request() -> bytes:
    """A request to the container."""
    head = f"POST /invocations HTTP/1.1\r\nHost: c\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}"
    return f"{head}\r\n\r\n".encode() + BODY


def signed_request(boto: Any, endpoint: str) -> tuple[tuple[str, int], bytes]:
    """Where InvokeEndpoint is asked, and a request that is good for some minutes."""
    url = urlsplit(endpoint)
    assert url.hostname
    assert url.port
    request = AWSRequest(
        "POST",
        f"{endpoint}/endpoints/{NAME}/invocations",
        headers={"Content-Type": "application/json", "Host": url.netloc},
        data=BODY,
    )
    SigV4Auth(boto.get_credentials(), "sagemaker", boto.region_name).add_auth(request)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    text = f"POST {urlsplit(request.url).path} HTTP/1.1\r\n{head}Content-Length: {len(BODY)}\r\n\r\n"
    return (url.hostname, url.port), text.encode() + BODY


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    """One request; its answer is read to its end, and must be what was sent."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    if body != BODY:
        raise SystemExit(f"not the answer: {head!r} {body[:500]!r}")


async def latencies_ms(address: tuple[str, int], request: bytes, count: int) -> list[float]:
    """Of one client, request after request."""
    reader, writer = await asyncio.open_connection(*address)
    times = []
    for _ in range(count + 20):
        begun = time.perf_counter()
        await asked(reader, writer, request)
        times.append(1e3 * (time.perf_counter() - begun))
    writer.close()
    return times[20:]


def throughput(address: tuple[str, int], request: bytes, clients: int, seconds: float) -> tuple[float, float]:
    """Requests a second of so many clients in a process of their own, and its share of a processor."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(run_clients, address, request, clients, seconds).result()


def run_clients(
    address: tuple[str, int], request: bytes, clients: int, seconds: float
) -> tuple[float, float]:
    """`throughput`, in this process."""

    async def run() -> int:
        loop, end = asyncio.get_running_loop(), time.perf_counter() + seconds
        made = [
            await loop.create_connection(lambda: Client(request, end, loop.create_future()), *address)
            for _ in range(clients)
        ]
        return sum([await client.done for _, client in made])

    before = time.process_time()
    count = uvloop.run(run())
    return count / seconds, (time.process_time() - before) / seconds


class Client(asyncio.Protocol):
    """One request after the other; each answer must be what was sent."""

    def __init__(self, request: bytes, end: float, done: asyncio.Future[int]) -> None:
        self.done = done
        self._request, self._end, self._count, self._got = request, end, 0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        self._transport: Any = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Ask again when all has come."""
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not found or len(body) < len(BODY):
            return
        if body != BODY or not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(SystemExit(f"not the answer: {self._got[:500]!r}"))
            return
        self._got, self._count = b"", self._count + 1
        if time.perf_counter() < self._end:
            self._transport.write(self._request)
        else:
            self._transport.close()
            self.done.set_result(self._count)


def at(values: list[float], share: float) -> float:
    """A quantile of sorted values."""
    return values[min(int(share * len(values)), len(values) - 1)]


if __name__ == "__main__":
    main()
