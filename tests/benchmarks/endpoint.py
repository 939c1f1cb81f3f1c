"""What an endpoint adds to its container: seconds until the first answer, and time of each request.

    python tests/benchmarks/endpoint.py [--deploys 5] [--requests 1000] [--clients 50] [--seconds 6]

The handler returns what it gets. The same container is asked at its own port and through InvokeEndpoint, by the
same client: raw sockets, the request signed beforehand, in turns. Prints one JSON object: seconds that CreateEndpoint
adds to `docker run` until /ping answers (medians), milliseconds that InvokeEndpoint adds to a request of one client,
and requests a second of many clients, with their ratio. Needs Docker and the training image.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import io
import json
import os
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
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "local_backend"), str(ROOT / "sdk")]

from tests.benchmarks.own_home import leave  # noqa: E402

from windtunnel import LocalSession  # noqa: E402

NAME, BUCKET, BODY = "echo", "models", b'{"inputs": [1, 2, 3]}'
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312"
LOCAL_IMAGE = os.environ.get("WINDTUNNEL_IMAGE", "windtunnel-training:0.1.0")
HANDLER = b"def model_fn(folder):\n    return 1\n\n\ndef transform_fn(model, body, kind, accept):\n    return body\n"
PING_EVERY_S = 0.02
PATIENCE_S = 120.0


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deploys", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="windtunnel-endpoint-") as folder:
        os.environ["WINDTUNNEL_HOME"] = f"{folder}/home"
        session = LocalSession()
        try:
            print(json.dumps(measured(session, Path(folder), options)))
        finally:
            leave(session)


def measured(session: LocalSession, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    model = folder / "model"
    (model / "code").mkdir(parents=True)
    (model / "code" / "inference.py").write_bytes(HANDLER)
    endpoint = session.endpoint()
    keys = json.loads((session.home / "credentials.json").read_text())
    boto = boto3.Session(keys["access_key_id"], keys["secret_access_key"], region_name=session.region)
    sagemaker = boto.client("sagemaker", endpoint_url=endpoint)
    store(boto.client("s3", endpoint_url=endpoint))
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
    bare, deployed = [], []
    for _ in range(options.deploys):
        bare.append(seconds_of_docker_run(model))
        deployed.append(seconds_of_deploy(sagemaker))
    deployed.append(seconds_of_deploy(sagemaker, keep=True))
    try:
        direct = (("127.0.0.1", container_port()), plain_request())
        through = signed_request(boto, endpoint)
        one = [asyncio.run(latencies_ms(*way, options.requests)) for way in (direct, through) * 2]
        many = [
            asyncio.run(throughput(*way, options.clients, options.seconds)) for way in (direct, through) * 3
        ]
    finally:
        sagemaker.delete_endpoint(EndpointName=NAME)
        await_gone(sagemaker)
    asked, invoked = sorted(one[0] + one[2]), sorted(one[1] + one[3])
    rates = {"direct": statistics.median(many[0::2]), "invoked": statistics.median(many[1::2])}
    return {
        "deploy_added_s": round(statistics.median(deployed) - statistics.median(bare), 2),
        "docker_run_s": round(statistics.median(bare), 2),
        "overhead_ms_p50": round(statistics.median(invoked) - statistics.median(asked), 2),
        "overhead_ms_p99": round(at(invoked, 0.99) - at(asked, 0.99), 2),
        "direct_ms_p50": round(statistics.median(asked), 2),
        "requests_per_s": {name: round(rate) for name, rate in rates.items()},
        "requests_per_s_ratio": round(rates["invoked"] / rates["direct"], 2),
        "clients": options.clients,
    }


def store(s3: Any) -> None:
    """The model's archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("code/inference.py")
        member.size = len(HANDLER)
        archive.addfile(member, io.BytesIO(HANDLER))
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


def container_port() -> int:
    """Where the endpoint's container is asked directly."""
    ids = ["docker", "ps", "--quiet", "--filter", f"label=windtunnel.endpoint={NAME}"]
    container = subprocess.run(ids, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[0]
    shown = subprocess.run(
        ["docker", "port", container], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return int(shown.rpartition(":")[2])


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


async def throughput(address: tuple[str, int], request: bytes, clients: int, seconds: float) -> float:
    """Requests a second of so many clients, each with one request at a time."""
    end = time.perf_counter() + seconds

    async def client() -> int:
        reader, writer = await asyncio.open_connection(*address)
        count = 0
        while time.perf_counter() < end:
            await asked(reader, writer, request)
            count += 1
        writer.close()
        return count

    return sum(await asyncio.gather(*(client() for _ in range(clients)))) / seconds


def at(values: list[float], share: float) -> float:
    """A quantile of sorted values."""
    return values[min(int(share * len(values)), len(values) - 1)]


if __name__ == "__main__":
    main()
