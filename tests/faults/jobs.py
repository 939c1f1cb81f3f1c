"""The jobs of the fault test, and what must be true of each when it has ended."""

from __future__ import annotations

import io
import tarfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.fakes.wire import create_request
from tests.faults.backend import Backend

IMAGE = "windtunnel-faults:1"
BUCKET = "faults"
WEIGHTS = 200_000
KILLED = "AlgorithmError: Exit Code: 137\nKilled by SIGKILL"

TRAIN = """#!/bin/sh
# Numbered lines on both streams; what was printed is also written down, and comes out with the artifacts.
job="$TRAINING_JOB_NAME"
mkdir -p /opt/ml/output/data
number=0
while [ "$number" -lt "$LINES" ]; do
    if [ $((number % 4)) -eq 3 ]; then
        echo "err $number $job" >&2 && echo "err $number $job" >>/opt/ml/output/data/printed
    else
        echo "out $number $job" && echo "out $number $job" >>/opt/ml/output/data/printed
    fi
    number=$((number + 1))
    sleep "$PAUSE"
done
# The last lines and what AWS's toolkit does last: without it nobody can tell how a container ended
# of which a killed engine had not yet written down the exit code.
yes "$job" | head -c "$WEIGHTS" >/opt/ml/model/weights
echo "out end $job" && echo "out end $job" >>/opt/ml/output/data/printed
: >/opt/ml/output/success
: >/opt/ml/output/data/over
"""


@dataclass(frozen=True)
class Script:
    """What a job does."""

    name: str
    lines: int
    pause_s: float

    def request(self) -> dict[str, Any]:
        """CreateTrainingJob's members."""
        environment = {"LINES": self.lines, "PAUSE": f"{self.pause_s:.3f}", "WEIGHTS": WEIGHTS}
        return create_request(
            self.name,
            AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File"},
            OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/out"},
            Environment={name: str(value) for name, value in environment.items()},
        )

    def prints(self) -> list[str]:
        """All its lines."""
        numbered = [f"{'err' if n % 4 == 3 else 'out'} {n} {self.name}" for n in range(self.lines)]
        return [*numbered, f"out end {self.name}"]


@dataclass
class Verdict:
    """What was found of one job; all is well if nothing was."""

    status: str
    wrong: list[str] = field(default_factory=list)
    printed: int = 0
    lost: int = 0
    lost_by_engine: int = 0
    """Lines that a killed engine had taken out of the container's pipe and had not written down yet. No fault of
    the server's: nobody can have them."""
    repeated: int = 0
    disordered: int = 0

    @property
    def faults(self) -> list[str]:
        """In words."""
        counts = {"lost": self.lost, "repeated": self.repeated, "out of order": self.disordered}
        return [*self.wrong, *(f"{count} lines {word}" for word, count in counts.items() if count)]


def judge(
    script: Script, backend: Backend, failures: tuple[str, ...], engine_log: Sequence[str] | None = None
) -> Verdict:
    """Look at a job that has ended.

    Args:
        script: what it was to do.
        backend: that ran it.
        failures: FailureReasons, as they begin, with which it may have failed; none: it must be Completed.
        engine_log: what an engine that was killed has written down of the container; None: none was killed.
    """
    found = backend.describe(script.name)
    verdict = Verdict(found["TrainingJobStatus"])
    artifacts = _artifacts(script.name, backend)
    output = artifacts.get("output.tar.gz", {})
    printed = output.get("printed", b"").decode().splitlines()
    if verdict.status == "Completed":
        if printed != script.prints():
            verdict.wrong.append(f"Completed, but printed {len(printed)} of {script.lines + 1} lines")
        weights = (script.name + "\n").encode() * (WEIGHTS // len(script.name) + 1)
        if artifacts.get("model.tar.gz") != {"weights": weights[:WEIGHTS]}:
            verdict.wrong.append("the model is not whole")
        if not str(found.get("ModelArtifacts", {}).get("S3ModelArtifacts")).endswith("model.tar.gz"):
            verdict.wrong.append("ModelArtifacts is not set")
    else:
        reason = found.get("FailureReason", "")
        if verdict.status != "Failed" or not any(reason.startswith(words) for words in failures):
            verdict.wrong.append(f"{verdict.status} {reason!r}")
        # One that is killed behind its last line, before its end, was killed.
        if "over" in output and not reason.startswith(KILLED):
            verdict.wrong.append(f"the script came to its end, but the job is {verdict.status}: {reason!r}")
    _judge_lines(verdict, printed, backend.log(script.name), engine_log)
    return verdict


def _judge_lines(
    verdict: Verdict, printed: list[str], logged: list[str], engine_log: Sequence[str] | None
) -> None:
    """The log against what the script wrote down; the last line may be logged and not written down."""
    expected, got = Counter(printed), Counter(logged)
    lost = expected - got
    by_engine = Counter() if engine_log is None else lost - Counter(engine_log)
    verdict.printed = len(printed)
    verdict.lost = (lost - by_engine).total()
    verdict.lost_by_engine = by_engine.total()
    verdict.repeated = sum(count - 1 for count in got.values())
    for stream in ("out", "err"):
        numbers = [line.split()[1] for line in logged if line.startswith(f"{stream} ")]
        values = [float("inf") if number == "end" else int(number) for number in numbers]
        verdict.disordered += sum(a > b for a, b in pairwise(values))


def _artifacts(job: str, backend: Backend) -> dict[str, dict[str, bytes]]:
    """The content of each archive that the job left, by its name."""
    prefix = f"out/{job}/output/"
    listed = backend.call("s3", "list_objects_v2", Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    found = {}
    for entry in listed:
        data = backend.call("s3", "get_object", Bucket=BUCKET, Key=entry["Key"])["Body"].read()
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
            members = [member for member in tar.getmembers() if member.isreg()]
            content = {m.name: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]
        found[entry["Key"].removeprefix(prefix)] = content
    return found
