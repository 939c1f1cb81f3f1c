"""From `fit()` to the script's first line, over a bare `docker run` of the same container.

    python tests/benchmarks/fit_overhead.py [--pairs 5]

A job is started and looked at with `docker inspect`; then `docker run` of exactly
that (image, command, environment, mounts, limits) takes turns with `fit()` in a new
process, and with a second `fit()` in that process. The backend runs already. Prints
one JSON object; `added_seconds` is the median over the pairs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from windtunnel import LocalSession, PyTorch, TrainingJob

SCRIPTS = Path(__file__).resolve().parent / "scripts"


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--fits", metavar="HOME", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fits:
        print(json.dumps([fit_once(LocalSession(home=arguments.fits)) for _ in range(2)]))
        return
    with tempfile.TemporaryDirectory() as folder:
        session = LocalSession(home=Path(folder) / "home")
        try:
            print(json.dumps(measure(session, Path(folder), arguments.pairs), indent=2))
        finally:
            session.backend.stop()


def measure(session: LocalSession, folder: Path, pairs: int) -> dict[str, Any]:
    """The pairs in turn, after one of each that does not count."""
    bare_command = as_docker_run(session, folder)
    bare, cold, warm = [], [], []
    for number in range(pairs + 1):
        bare_s = run_bare(bare_command, folder)
        done = subprocess.run(
            [sys.executable, __file__, "--fits", str(session.home)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        cold_s, warm_s = json.loads(done.stdout.splitlines()[-1])
        if number:
            bare.append(bare_s)
            cold.append(cold_s)
            warm.append(warm_s)
    return {
        "added_seconds": added(cold, bare),
        "added_seconds_second_fit_of_a_process": added(warm, bare),
        "bare_docker_run_seconds": round(statistics.median(bare), 3),
        "fit_seconds": round(statistics.median(cold), 3),
        "added_seconds_of_each_pair": [round(c - b, 3) for c, b in zip(cold, bare, strict=True)],
        "pairs": pairs,
    }


def added(fits: list[float], bares: list[float]) -> float:
    """Median of the differences, pair by pair."""
    return round(statistics.median(fit - bare for fit, bare in zip(fits, bares, strict=True)), 3)


def estimator(session: LocalSession, **hyperparameters: int) -> PyTorch:
    """The job: one line, no distribution."""
    return PyTorch(
        "first_line.py",
        source_dir=str(SCRIPTS),
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        hyperparameters=hyperparameters,
        session=session,
    )


def fit_once(session: LocalSession) -> float:
    """Seconds from the call of fit() to the script's first line."""
    job = estimator(session)
    started = time.time()
    return first_line(job.fit(wait=False).logs(follow=True)) - started


def first_line(lines: Iterable[str]) -> float:
    """When the script printed its first line: Unix seconds."""
    found = 0.0
    for line in lines:
        if line.startswith("FIRST "):
            found = float(line.split()[1])
    if not found:
        raise SystemExit("the script's first line did not come")
    return found


def run_bare(command: list[str], folder: Path) -> float:
    """Seconds from the start of `docker run` to the script's first line."""
    shutil.rmtree(folder / "bare" / "run", ignore_errors=True)
    shutil.copytree(folder / "bare" / "original", folder / "bare" / "run", symlinks=True)
    started = time.time()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"docker run failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return first_line(done.stdout.splitlines()) - started


def as_docker_run(session: LocalSession, folder: Path) -> list[str]:
    """`docker run` of what a real job's container is, on a copy of the job's folder."""
    command = copied(estimator(session, hold=1).fit(wait=False), session, folder / "bare")
    for path in (folder / "bare" / "original").rglob("hyperparameters.json"):
        hyperparameters = json.loads(path.read_text())
        hyperparameters.pop("hold")
        path.write_text(json.dumps(hyperparameters))
    return command


def copied(job: TrainingJob, session: LocalSession, folder: Path) -> list[str]:
    """The `docker run` of a job that waits behind its first line, in ``folder/run``.

    The job is stopped; what its own folder held at the start is in ``folder/original``.
    """
    for line in job.logs(follow=True):
        if line.startswith("FIRST"):
            break
    try:
        container = inspect(job)
        shutil.copytree(session.home / "jobs" / job.name, folder / "original", symlinks=True)
    finally:
        job.stop()
        job.wait(logs=False)
    for code in (folder / "original" / "hosts").glob("*/ml/code"):
        # As before the toolkit unpacked the source.
        shutil.rmtree(code)
        code.mkdir()
    return docker_run(container, str(session.home / "jobs" / job.name), str(folder / "run"))


def inspect(job: TrainingJob) -> dict[str, Any]:
    """The engine's description of the job's container."""
    ids = subprocess.run(
        ["docker", "ps", "-q", "--filter", f"label=windtunnel.job={job.name}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    text = subprocess.run(["docker", "inspect", *ids], capture_output=True, text=True, check=True).stdout
    (container,) = json.loads(text)
    result: dict[str, Any] = container
    return result


def docker_run(container: dict[str, Any], job_folder: str, copy: str) -> list[str]:
    """The command line that makes such a container again."""
    config, host = container["Config"], container["HostConfig"]
    command = ["docker", "run", "--rm", "--init", "--hostname", config["Hostname"], "--user", config["User"]]
    command += ["--shm-size", str(host["ShmSize"]), "--memory", str(host["Memory"])]
    command += ["--memory-swap", str(host["MemorySwap"])]
    for capability in host["CapDrop"] or []:
        command += ["--cap-drop", capability]
    for option in host["SecurityOpt"] or []:
        command += ["--security-opt", option]
    for variable in config["Env"]:
        command += ["--env", variable]
    for mount in container["Mounts"]:
        suffix = "" if mount["RW"] else ":ro"
        source = mount["Source"].replace(job_folder, copy)
        command += ["--volume", f"{source}:{mount['Destination']}{suffix}"]
    entrypoint = config["Entrypoint"] or []
    if entrypoint:
        command += ["--entrypoint", entrypoint[0]]
    return [*command, config["Image"], *entrypoint[1:], *(config["Cmd"] or [])]


if __name__ == "__main__":
    main()
