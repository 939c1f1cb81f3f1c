"""What the script of one job can see and reach: its own things, and nothing of the machine or of other jobs."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.wire import create_request
from tests.faults.backend import Backend
from tests.unit.service.samples import channel
from windtunnel_local.runner.docker import Engine
from windtunnel_local.runner.docker.base import ensure_base

pytestmark = pytest.mark.docker
BUCKET = "isolation"
CHANNEL = "/opt/ml/input/data/train"
SECRET = "the other job's data"

LISTEN = r"""
$| = 1;
use IO::Socket::INET;
my $server = IO::Socket::INET->new(Listen => 5, LocalPort => 29500) or die "$!";
my ($address) = split " ", `hostname -i`;
print "address $address\n";
open(my $file, ">", "/opt/ml/model/data"); print $file "the other job's data"; close $file;
while (my $peer = $server->accept) { print "visited\n"; }
"""

# Each line that it prints is a thing that it could do; "done" is the last.
INTRUDE = r"""
found() { echo "found $*"; }
[ -e /var/run/docker.sock ] || [ -e /run/docker.sock ] && found the socket of the engine
[ -e "$SERVER_HOME" ] && found the home of the server
grep -q "NoNewPrivs:.1" /proc/self/status || found new privileges
grep -q "Seccomp:.2" /proc/self/status || found no system call filter
[ "$(cat /proc/self/uid_map | wc -l)" = 1 ] || found another user namespace
for bit in 12 13 16 17 19 21 27; do
    capabilities=$(sed -n "s/^CapBnd:.//p" /proc/self/status)
    [ $(( (0x$capabilities >> bit) & 1 )) = 0 ] || found capability $bit
done
mknod /tmp/disk b 8 0 2>/dev/null && found a way to make devices
mount -t tmpfs none /mnt 2>/dev/null && found a way to mount
unshare -r true 2>/dev/null && found a user namespace of its own
(echo 1 >/proc/sys/kernel/sysrq) 2>/dev/null && found the settings of the kernel
(echo x >/proc/sysrq-trigger) 2>/dev/null && found the magic key
(echo 1 >/sys/kernel/mm/ksm/run) 2>/dev/null && found the memory of the machine
for limit in memory/memory.limit_in_bytes pids/pids.max memory.max pids.max; do
    [ -e /sys/fs/cgroup/$limit ] && (echo 1 >/sys/fs/cgroup/$limit) 2>/dev/null && found $limit
done
[ -s /proc/kcore ] && head -c 1 /proc/kcore 2>/dev/null | grep -q . && found the memory of the kernel
for name in /dev/mem /dev/kmsg /dev/sda /dev/vda /dev/fuse /dev/net/tun /dev/kvm; do [ -e $name ] && found $name; done
(echo x >/opt/ml/input/data/train/new || echo x >>/opt/ml/input/data/train/file) 2>/dev/null && found the input
limit=$(cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null)
[ "$limit" -le 32768 ] 2>/dev/null || found processes without end
limit=$(cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)
[ "$limit" -le 1073741824 ] 2>/dev/null || found memory without end
route='my @f = split; print join ".", reverse map hex, $f[2] =~ /../g if $f[1] eq "00000000"'
gateway=$(perl -ne "$route" /proc/net/route)
for place in "$OTHER:29500" "$gateway:$SERVER_PORT" "$gateway:$SERVICE_PORT" "127.0.0.1:$SERVER_PORT"; do
    perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new(PeerAddr => shift, Timeout => 2)' "$place" \
        && found "$place"
done
up=../../../../../../../../../../../../..
rm -rf /opt/ml/model /opt/ml/output/data /opt/ml/checkpoints /opt/ml/output/tensorboard
ln -s "$up$SERVER_HOME" /opt/ml/model
ln -s "$up$SERVER_HOME/jobs" /opt/ml/output/data
mkdir /opt/ml/checkpoints /opt/ml/output/tensorboard
ln -s "$SERVER_HOME/state.sqlite" /opt/ml/checkpoints/database
ln -s "$up$SERVER_HOME/credentials.json" /opt/ml/output/tensorboard/keys
ln -s /etc/shadow /opt/ml/checkpoints/shadow
mkdir -p /opt/windtunnel/counters/cores-1
mkfifo /opt/ml/checkpoints/pipe /opt/ml/output/tensorboard/pipe /opt/ml/output/failure
mkfifo /opt/windtunnel/counters/rank-0.jsonl /opt/windtunnel/counters/cores-1/core-0.json
echo mine >/opt/ml/checkpoints/good
sleep 1.5
echo done
exit 7
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """Not where pytest keeps its folders: that one is to be found inside under no name."""
    with tempfile.TemporaryDirectory(prefix="windtunnel-isolation-", dir="/var/tmp") as folder:
        yield Path(folder) / "home"


@pytest.fixture
def backend(home: Path) -> Iterator[Backend]:
    """A server on the machine's engine: only there is its loopback the server's too."""
    made = Backend(home)
    made.start()
    made.call("s3", "create_bucket", Bucket=BUCKET)
    yield made
    running = made.call("sagemaker", "list_training_jobs", StatusEquals="InProgress")["TrainingJobSummaries"]
    for job in running:  # of a test that failed
        made.call("sagemaker", "stop_training_job", TrainingJobName=job["TrainingJobName"])
        made.end_of(job["TrainingJobName"])
    made.stop()


@pytest.fixture
def service() -> Iterator[int]:
    """The port of some service on the machine's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def accept() -> None:
            try:
                server.accept()[0].close()
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]


def request(name: str, image: str, folder: Path, command: list[str], **environment: str) -> dict[str, Any]:
    """A job whose script is in its only channel, which is a folder of this machine."""
    algorithm = {"TrainingImage": image, "TrainingInputMode": "File", "ContainerEntrypoint": command}
    return create_request(
        name,
        AlgorithmSpecification=algorithm,
        InputDataConfig=[channel("train", f"file://{folder}")],
        OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/out"},
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/checkpoints/{name}"},
        Environment=environment,
    )


def test_a_hostile_script(backend: Backend, home: Path, service: int, tmp_path: Path) -> None:
    """Beside another job of the same home: neither its port, nor the server, nor anything of the machine; and
    what it leaves in the place of its output is neither followed nor waited for.
    """
    engine = Engine()
    try:
        image = ensure_base(engine.client(), None, print)
    finally:
        engine.close()
    (tmp_path / "file").write_text("input")
    (tmp_path / "listen").write_text(LISTEN)
    (tmp_path / "intrude").write_text(INTRUDE)
    backend.create(request("victim", image, tmp_path, ["perl", f"{CHANNEL}/listen"]))
    while not (lines := [line for line in backend.log("victim") if line.startswith("address ")]):
        assert backend.describe("victim")["TrainingJobStatus"] == "InProgress"
    port = json.loads((home / "backend.json").read_text())["endpoint"].rpartition(":")[2]
    intruder = request(
        "intruder",
        image,
        tmp_path,
        ["sh", f"{CHANNEL}/intrude"],
        OTHER=lines[0].split()[1],
        SERVER_HOME=str(home),
        SERVER_PORT=port,
        SERVICE_PORT=str(service),
    )
    backend.create(intruder)
    found = backend.end_of("intruder")
    assert backend.log("intruder") == ["done"]
    assert found["FailureReason"] == "AlgorithmError: Exit Code: 7"
    assert backend.log("victim") == lines, "nobody came by"
    stored = {
        entry["Key"]: backend.call("s3", "get_object", Bucket=BUCKET, Key=entry["Key"])["Body"].read()
        for entry in backend.call("s3", "list_objects_v2", Bucket=BUCKET)["Contents"]
    }
    counters = stored.pop("out/intruder/windtunnel/counters.json", b"")
    assert stored == {"checkpoints/intruder/good": b"mine\n"}
    assert SECRET.encode() not in counters
    assert (tmp_path / "file").read_text() == "input"
    backend.call("sagemaker", "stop_training_job", TrainingJobName="victim")
    assert backend.end_of("victim")["TrainingJobStatus"] == "Stopped"
