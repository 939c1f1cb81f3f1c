"""What clients add to an 8-second job: seconds of fit() or train() over a bare `docker run` of its container.

    python tests/benchmarks/clients.py [--rounds 3] [--clients [v2] [v3]]

A job of each client is started and looked at with `docker inspect`; then `docker run` of exactly that
(image, command, environment, mounts, limits) takes turns with the client's own fit() or train(), which
waits for the end and shows the log. The backend runs already; imports and constructors do not count.
SDK v2's container is the same as ours, so both are held against the same run of it. Prints one JSON
object; figures are medians over the rounds, each the difference to the bare run of its own round.
The container itself takes some tenths more or less each time, whoever starts it; `..._around_s` leaves
that out: it is the difference between what either took outside of the container's start and end. No other
container may start or end meanwhile.

The packages are those of tests/clients, installed on first use.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from fit_overhead import copied  # noqa: E402  beside this file
from tests.clients.environments import environment  # noqa: E402

from windtunnel import LocalSession, TrainingJob  # noqa: E402

SECONDS = "5"  # of the script; the container takes about 8
_HOLD_SECONDS = "600"


@dataclass
class Client:
    """A way to start the job, and whose bare container it is held against."""

    name: str
    python: str
    script: str
    bare_of: str
    totals: list[float] = field(default_factory=list)
    added: list[float] = field(default_factory=list)
    around: list[float] = field(default_factory=list)
    """Of `totals`, what was before the container's start and after its end."""

    def run(self, folder: Path, variables: Mapping[str, str], seconds: str, wait: str) -> tuple[str, float]:
        """The job's name, and what fit() took."""
        done = subprocess.run(
            [self.python, str(HERE / "scripts" / self.script), str(folder / "source"), seconds, wait],
            env=dict(variables),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"^RESULT (\S+) (\S+)$", done.stdout, flags=re.MULTILINE)
        if done.returncode or not found:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        return found[1], float(found[2])


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--clients", nargs="*", choices=["v2", "v3"], default=["v2", "v3"], help="besides ours (both)"
    )
    arguments = parser.parse_args()
    clients = [Client("windtunnel", sys.executable, "fit_with_windtunnel.py", "windtunnel")]
    if "v2" in arguments.clients:
        clients.append(Client("v2", interpreter("sagemaker_v2"), "fit_with_v2.py", "windtunnel"))
    if "v3" in arguments.clients:
        clients.append(Client("v3", interpreter("sagemaker_v3"), "train_with_v3.py", "v3"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source").mkdir()
        shutil.copy(HERE / "scripts" / "eight_seconds.py", folder / "source")
        session = LocalSession(home=folder / "home")
        try:
            print(json.dumps(measure(clients, session, folder, arguments.rounds), indent=2))
        finally:
            session.backend.stop()


def interpreter(name: str) -> str:
    """Python of a client's own environment."""
    return str(environment(name) / "bin" / "python")


def measure(clients: Sequence[Client], session: LocalSession, folder: Path, rounds: int) -> dict[str, Any]:
    """The rounds, after one bare run of each container that does not count."""
    variables = client_variables(session, folder)
    bare = {c.name: as_docker_run(c, session, folder, variables) for c in clients if c.bare_of == c.name}
    for name, command in bare.items():
        run_bare(command, folder / name)
    bare_s: dict[str, list[float]] = {name: [] for name in bare}
    bare_around_s: dict[str, float] = {}
    for _ in range(rounds):
        for name, command in bare.items():
            began = time.time()
            bare_s[name].append(run_bare(command, folder / name))
            bare_around_s[name] = bare_s[name][-1] - container_seconds(began)
        for client in clients:
            began = time.time()
            _, total = client.run(folder, variables, SECONDS, "wait")
            client.totals.append(total)
            client.added.append(total - bare_s[client.bare_of][-1])
            client.around.append(total - container_seconds(began) - bare_around_s[client.bare_of])
    return {
        **{f"{client.name}_added_s": rounded(client.added) for client in clients},
        **{f"{client.name}_added_around_s": rounded(client.around) for client in clients},
        "bare_s": rounded(bare_s["windtunnel"]),
        **({"bare_of_v3_s": rounded(bare_s["v3"])} if "v3" in bare_s else {}),
        **{f"{client.name}_s": rounded(client.totals) for client in clients},
        "windtunnel_added_s_of_each_round": [round(value, 2) for value in clients[0].added],
        "rounds": rounds,
    }


def container_seconds(since: float) -> float:
    """From the start to the end of the one container that has run since then (Unix seconds)."""
    command = ["docker", "events", "--since", f"{since:.6f}", "--until", f"{time.time():.6f}"]
    filters = ["type=container", "event=start", "event=die"]
    form = ["--format", "{{.Action}} {{.TimeNano}}", *(f"--filter={word}" for word in filters)]
    done = subprocess.run([*command, *form], capture_output=True, text=True, check=True)
    events = [line.split() for line in done.stdout.splitlines()]
    if [action for action, _ in events] != ["start", "die"]:
        raise SystemExit(f"not one container, from start to end: {done.stdout}")
    return (int(events[1][1]) - int(events[0][1])) / 1e9


def rounded(values: Sequence[float]) -> float:
    """The median in hundredths."""
    return round(statistics.median(values), 2)


def client_variables(session: LocalSession, folder: Path) -> dict[str, str]:
    """What `windtunnel env` makes of this process's environment, with an empty home."""
    before = {**os.environ, "HOME": str(folder), "WINDTUNNEL_HOME": str(session.home)}
    command = [sys.executable, "-m", "windtunnel.cli.main", "env", "--json"]
    done = subprocess.run(command, env=before, capture_output=True, text=True, check=True)
    after: dict[str, str | None] = {**before, **json.loads(done.stdout)}
    return {name: value for name, value in after.items() if value is not None}


def as_docker_run(
    client: Client, session: LocalSession, folder: Path, variables: Mapping[str, str]
) -> list[str]:
    """`docker run` of what the client's job is, on a copy of the job's folder."""
    name, _ = client.run(folder, variables, _HOLD_SECONDS, "go")
    command = copied(TrainingJob.attach(name, session), session, folder / client.name)
    for path in (folder / client.name / "original").rglob("hyperparameters.json"):
        path.write_text(path.read_text().replace(_HOLD_SECONDS, SECONDS))
    return [word.replace(_HOLD_SECONDS, SECONDS) for word in command]


def run_bare(command: Sequence[str], folder: Path) -> float:
    """Seconds of `docker run`, from its start to its end."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    shutil.copytree(folder / "original", folder / "run", symlinks=True)
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode or "FIRST" not in done.stdout:
        raise SystemExit(f"docker run failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took


if __name__ == "__main__":
    main()
