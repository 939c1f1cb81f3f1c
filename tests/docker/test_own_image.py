"""Images of one's own, run as SageMaker runs them: `train`, channels, isolation, output."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.archive import archive
from windtunnel import Estimator, LocalSession, TrainingInput, TrainingJobFailed
from windtunnel_local.runner.docker import Engine

pytestmark = pytest.mark.docker

TRAIN = """#!/bin/bash
# What a host sees of its channel, and whom it reaches.
data=/opt/ml/input/data/train
echo "files: $(cd $data && ls | tr '\\n' ' ')"
echo "content: $(cat $data/*)"
echo changed 2>/dev/null > $data/$(ls $data | head -1) && echo "written" || echo "not written"
touch $data/new 2>/dev/null && echo "made" || echo "not made"
rm -f $data/* 2>/dev/null && echo "removed" || echo "not removed"
grep -o ' /opt/ml/input/data/train [^,]*\\(,[a-z]*\\)' /proc/mounts | cut -d' ' -f4 | cut -d, -f1

reach() { # NAME ADDRESS PORT
    perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1],
        Timeout => $ENV{PATIENCE} || 1) ? 0 : 1)' "$2" "$3" && echo "$1: reached" || echo "$1: out of reach"
}
own=$(hostname -i | cut -d' ' -f1)
reach gateway "${own%.*}.1" $PORT &
for address in $ADDRESSES; do reach host $address $PORT & done
(getent hosts example.com >/dev/null && echo "name: found" || echo "name: not found") &
if [ "$ALONE" ]; then
    echo alone
elif [ "$(hostname)" = algo-1 ]; then
    perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 7777, Listen => 1, ReuseAddr => 1);
        alarm 300; $c = $s->accept; print "peer: ", scalar <$c>'
elif [ "$(hostname)" = algo-2 ]; then
    perl -MIO::Socket::INET -e 'for (1 .. 3000) {
        $s = IO::Socket::INET->new(PeerAddr => "algo-1", PeerPort => 7777);
        if ($s) { print $s "hello from algo-2\\n"; exit 0 }
        select(undef, undef, undef, 0.1) } exit 9'
fi
wait
mkdir -p /opt/ml/model/deep && echo weights > /opt/ml/model/deep/weights && echo plot > /opt/ml/output/data/plot
"""


@pytest.fixture(scope="module")
def image(base: str) -> Iterator[str]:
    """The same with one."""
    engine = Engine()
    client = engine.client()
    made = client.containers.create(base, "true")
    try:
        made.put_archive("/", archive(("usr/local/bin/train", TRAIN.encode()), mode=0o755))
        made.commit("windtunnel-test-own", "train", conf={"User": "4242", "Env": ["OWN=1"]})
    finally:
        made.remove()
    yield "windtunnel-test-own:train"
    client.images.remove("windtunnel-test-own:train", force=True)
    engine.close()


@pytest.fixture
def listener() -> Iterator[tuple[int, list[str]]]:
    """A service of this machine on all its addresses: its port, and who has connected."""
    callers: list[str] = []
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104 - what a job must not reach

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, caller = server.accept()
                    callers.append(caller[0])
                    connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], callers


def host_addresses() -> str:
    """Addresses of this machine: on the engine's default bridge, and towards the outside."""
    found = []
    engine = Engine()
    with contextlib.suppress(LookupError):
        bridge = engine.client().networks.get("bridge").attrs
        found.append(bridge["IPAM"]["Config"][0]["Gateway"])
    engine.close()
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect(("192.0.2.1", 9))
        found.append(towards.getsockname()[0])
    assert found
    return " ".join(found)


def estimator(session: LocalSession, image: str, **arguments: object) -> Estimator:
    settings = {"instance_type": "ml.trn1.2xlarge", "instance_count": 1, "max_run": 600, **arguments}
    return Estimator(image, session=session, **settings)  # type: ignore[arg-type]


def test_an_isolated_cluster(
    session: LocalSession, image: str, tmp_path: Path, listener: tuple[int, list[str]]
) -> None:
    """Two hosts share out a FastFile channel that they cannot write to, reach each other, and nothing else."""
    for name in "abc":
        (tmp_path / name).write_text(name)
    uri = session.upload_data(str(tmp_path), key_prefix="isolated")
    port, callers = listener
    addresses = host_addresses()
    job = estimator(
        session,
        image,
        instance_count=2,
        enable_network_isolation=True,
        disable_output_compression=True,
        environment={"PORT": str(port), "ADDRESSES": addresses},
    ).fit({"train": TrainingInput(uri, distribution="ShardedByS3Key", input_mode="FastFile")}, logs=False)
    log = sorted(job.logs())
    for host, names in (("algo-1", "ac"), ("algo-2", "b")):
        lines = [line.partition("] ")[2] for line in log if line.startswith(f"[{host}] ")]
        expected = [
            f"content: {names}",
            f"files: {' '.join(names)} ",
            "gateway: out of reach",
            *["host: out of reach"] * len(addresses.split()),
            "name: not found",
            "not made",
            "not removed",
            "not written",
            *(["peer: hello from algo-2"] if host == "algo-1" else []),
            "ro",
        ]
        assert lines == expected
    assert callers == []
    for name in "abc":
        out = io.BytesIO()
        assert session.service.get_object(session.default_bucket(), f"isolated/{name}", out)
        assert out.getvalue() == name.encode()
    assert job.model_data.endswith(f"/{job.name}/output/model/")
    folder = job.download_model(tmp_path / "model")
    assert (folder / "deep" / "weights").read_text() == "weights\n"


def test_an_ordinary_job_is_not_isolated(
    session: LocalSession, image: str, tmp_path: Path, listener: tuple[int, list[str]]
) -> None:
    """The counterpart: the same program reaches the service, and writes to its copy of the data."""
    (tmp_path / "a").write_text("a")
    uri = session.upload_data(str(tmp_path), key_prefix="open")
    port, callers = listener
    job = estimator(
        session,
        image,
        environment={"PORT": str(port), "ADDRESSES": host_addresses().split()[0], "PATIENCE": "60"},
        container_entry_point=["/bin/bash", "-c", "ALONE=1 exec train"],
    ).fit({"train": uri}, logs=False)
    lines = set(job.logs())
    assert {"files: a ", "written", "made", "removed", "host: reached", "alone"} <= lines
    assert callers


def test_what_an_image_lacks_is_said(session: LocalSession, base: str) -> None:
    """No `train`, no such image: in FailureReason, with what to do."""
    with pytest.raises(TrainingJobFailed) as failed:
        estimator(session, base).fit(logs=False)
    assert f"The image {base} does not have it" in str(failed.value)
    assert "Put an executable `train` on the image's PATH" in str(failed.value)
    with pytest.raises(TrainingJobFailed) as failed:
        estimator(session, "windtunnel-nowhere:1").fit(logs=False)
    assert "The Docker engine has no image windtunnel-nowhere:1" in str(failed.value)
