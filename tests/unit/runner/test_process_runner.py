"""The `process` runner: a job without a container, that survives its server and leaves nothing running."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.plans import container_plan
from tests.processes import runs
from tests.waiting import wait_for
from windtunnel_local.runner.process.runner import ProcessRunner
from windtunnel_local.runner.without_container.interpreter import Interpreter
from windtunnel_local.runner.without_container.log_file import follow_file
from windtunnel_local.service.ground.containers import MAX_LINE_BYTES, JobPlan, Mount
from windtunnel_local.service.ground.errors import RunnerError, RunnerUnavailable

HOST = "algo-1"


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[ProcessRunner]:
    """A runner whose interpreter is this one; ends all jobs."""
    runner = make_runner(tmp_path)
    yield runner
    for job in runner.jobs():
        runner.remove(job)


def make_runner(home: Path) -> ProcessRunner:
    """A runner as a restarted server would make it."""
    environment = {"PATH": os.environ["PATH"], "AWS_SECRET_ACCESS_KEY": "x"}
    return ProcessRunner(home, Interpreter(Path(sys.executable), environment), ("json",))


def plan(home: Path, code: str, job: str = "job", hosts: int = 1, channel: Path | None = None) -> JobPlan:
    """A job that runs a line of Python where `train` would run."""
    ml = home / "jobs" / job / "hosts" / HOST / "ml"
    (ml / "input" / "config").mkdir(parents=True, exist_ok=True)
    (ml / "model").mkdir(exist_ok=True)
    mounts = [Mount(str(ml), "/opt/ml")]
    if channel is not None:
        mounts.append(Mount(str(channel), "/opt/ml/input/data/train", read_only=True))
    containers = tuple(
        container_plan(
            job=job,
            host=f"algo-{number}",
            command=(sys.executable, "-c", code),
            environment={"GREETING": "hello", "SOMEWHERE": "/opt/ml/model", "HOME": "/home/job"},
            mounts=tuple(mounts),
        )
        for number in range(1, hosts + 1)
    )
    return JobPlan(job, containers)


def output(runner: ProcessRunner, job: str = "job") -> list[str]:
    """All lines behind the banner; waits for the job's end."""
    lines = [line.text for batch in runner.logs(job, HOST, None) for line in batch.lines]
    assert "no isolation" in lines[0]
    return lines[1:]


def test_a_job_runs_prints_and_ends(runner: ProcessRunner, tmp_path: Path) -> None:
    """Stdout and stderr share one order, and the exit code is kept with its times."""
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    runner.start(plan(tmp_path, code))
    assert output(runner) == ["out", "err"]
    state = runner.wait("job", HOST, 60)
    assert (state.status, state.exit_code) == ("exited", 3)
    assert state.started_at is not None
    assert state.finished_at is not None
    assert state.finished_at >= state.started_at


def test_paths_of_the_plan_lead_to_this_hosts_files(runner: ProcessRunner, tmp_path: Path) -> None:
    """In the environment, in hyperparameters and below SAGEMAKER_BASE_DIR, where channels are links.

    The toolkit finds our neuron-ls and torchrun first.
    """
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.csv").write_text("rows")
    code = (
        "import os, pathlib as p, shutil; base = p.Path(os.environ['SAGEMAKER_BASE_DIR']);"
        "print((base / 'input/data/train/train.csv').read_text());"
        "print(os.environ['SOMEWHERE'] == str(base / 'model'), p.Path.home().is_dir());"
        "print(os.environ['GREETING'], os.environ['SM_STUDIO_LOCAL_MODE']);"
        "print('AWS_SECRET_ACCESS_KEY' in os.environ);"
        "print(*(shutil.which(name) for name in ('neuron-ls', 'torchrun')))"
    )
    job = plan(tmp_path, code, channel=data)
    config = tmp_path / "jobs/job/hosts/algo-1/ml/input/config/hyperparameters.json"
    config.write_text(json.dumps({"a": '"/opt/ml/input/data/train/train.csv"', "b": "/opt/ml", "c": "3"}))
    runner.start(job)
    commands = tmp_path / "jobs/job/process/algo-1/bin"
    found = f"{commands}/neuron-ls {commands}/torchrun"
    assert output(runner) == ["rows", "True True", "hello true", "False", found]
    mapped = json.loads(config.read_text())
    assert mapped == {
        "a": json.dumps(str(data / "train.csv")),
        "b": job.containers[0].mounts[0].source,
        "c": "3",
    }


def test_starting_again_keeps_what_runs(runner: ProcessRunner, tmp_path: Path) -> None:
    """A server that crashed while starting a job may simply start it again."""
    job = plan(tmp_path, "print('once')")
    runner.start(job)
    make_runner(tmp_path).start(job)
    assert output(runner) == ["once"]
    runner.start(job)
    assert output(runner) == ["once"]


def test_a_new_server_adopts_a_running_job(runner: ProcessRunner, tmp_path: Path) -> None:
    """It finds the job, reads the rest of its log from the cursor, and learns the exit code."""
    go = tmp_path / "go"
    code = (
        "import pathlib, sys, time\nprint('before', flush=True)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\nprint('after')\nsys.exit(5)"
    )
    runner.start(plan(tmp_path, code))
    batches = runner.logs("job", HOST, None)
    lines: list[str] = []
    cursor = ""
    while "before" not in lines:
        batch = next(batches)
        lines += [line.text for line in batch.lines]
        cursor = batch.cursor
    adopted = make_runner(tmp_path)
    assert adopted.jobs() == {"job"}
    assert adopted.state("job", HOST).status == "running"
    go.touch()
    assert [line.text for batch in adopted.logs("job", HOST, cursor) for line in batch.lines] == ["after"]
    assert adopted.wait("job", HOST, 60).exit_code == 5


def test_sigterm_reaches_the_job(runner: ProcessRunner, tmp_path: Path) -> None:
    """A script may save its model on a stop."""
    ready = tmp_path / "ready"
    code = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *a: (print('saving'), sys.exit(0)))\n"
        f"pathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)"
    )
    runner.start(plan(tmp_path, code))
    wait_for(ready.exists)
    runner.terminate("job", HOST)
    assert output(runner) == ["saving"]
    assert runner.wait("job", HOST, 60).exit_code == 0


def pid_of_sleeper(runner: ProcessRunner, home: Path, pid: str = "os.getpid()") -> int:
    """What the expression of a job gives that runs until it is ended."""
    file = home / "pid"
    code = f"import os, pathlib, subprocess, sys, time\npathlib.Path({str(file)!r}).write_text(str({pid}))\n"
    runner.start(plan(home, f"{code}time.sleep(600)"))
    wait_for(lambda: file.exists() and file.read_text())
    return int(file.read_text())


def test_kill_ends_every_process_of_the_job(runner: ProcessRunner, tmp_path: Path) -> None:
    """Also one that left the job's session, and it counts as killed."""
    child = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    pid = pid_of_sleeper(runner, tmp_path, f"subprocess.Popen({child}, start_new_session=True).pid")
    runner.kill("job", HOST)
    assert runner.wait("job", HOST, 60).exit_code == 137
    assert not runs(pid)


def test_a_job_whose_supervisor_is_killed_counts_as_killed(runner: ProcessRunner, tmp_path: Path) -> None:
    """Nothing hangs, and what the job left running is ended."""
    pid = pid_of_sleeper(runner, tmp_path)
    supervisor = json.loads((tmp_path / "jobs/job/process/algo-1/run.json").read_text())["pid"]
    os.kill(supervisor, signal.SIGKILL)
    assert runner.wait("job", HOST, 60).exit_code == 137
    assert not runs(pid)


def test_a_folder_that_is_made_anew_is_another_job_s(runner: ProcessRunner, tmp_path: Path) -> None:
    """A supervisor whose folder was removed ends its job, and writes nothing into what stands there now."""
    pid = pid_of_sleeper(runner, tmp_path)
    folder = tmp_path / "jobs/job/process/algo-1"
    supervisor = json.loads((folder / "run.json").read_text())["pid"]
    folder.rename(gone := tmp_path / "gone")
    folder.mkdir()
    shutil.rmtree(gone)
    wait_for(lambda: not runs(supervisor) and not runs(pid))
    assert list(folder.iterdir()) == []


def test_what_a_job_leaves_behind_ends_with_it(runner: ProcessRunner, tmp_path: Path) -> None:
    """As in a container, whose processes end with the first: without the job's environment or its session, too."""
    code = (
        "import subprocess, sys\nfor how in ({}, {'env': {}}, {'start_new_session': True}):\n"
        "    print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], **how).pid)"
    )
    runner.start(plan(tmp_path, code))
    left = output(runner)
    assert len(left) == 3
    assert not any(runs(int(pid)) for pid in left)


def test_remove_ends_and_forgets_the_job(runner: ProcessRunner, tmp_path: Path) -> None:
    """Idempotent, and other jobs stay."""
    runner.start(plan(tmp_path, "import time; time.sleep(60)"))
    runner.start(plan(tmp_path, "import time; time.sleep(60)", job="other"))
    runner.remove("job")
    runner.remove("job")
    assert runner.state("job", HOST).status == "absent"
    assert runner.jobs() == {"other"}
    assert runner.state("other", HOST).status == "running"


def test_a_missing_command_ends_the_job_with_127(runner: ProcessRunner, tmp_path: Path) -> None:
    """As a shell says it, with the reason in the log."""
    job = plan(tmp_path, "")
    missing = replace(job.containers[0], command=("no-such-command",))
    runner.start(JobPlan("job", (missing,)))
    assert output(runner) == ["no-such-command: No such file or directory"]
    assert runner.wait("job", HOST, 60).exit_code == 127


def test_several_hosts_are_refused_with_the_way_out(runner: ProcessRunner, tmp_path: Path) -> None:
    """The message names the runner that can."""
    with pytest.raises(RunnerError, match="WINDTUNNEL_RUNNER=docker"):
        runner.start(plan(tmp_path, "", hosts=2))


def test_an_interpreter_without_the_toolkit_is_refused_with_the_fix(tmp_path: Path) -> None:
    """What is missing, and the command that installs it."""
    runner = ProcessRunner(tmp_path, Interpreter(Path(sys.executable), {}), ("json", "no_such_module"))
    with pytest.raises(RunnerUnavailable, match=r"no_such_module .*pip install 'windtunnel\[sim\]'"):
        runner.ensure_image("image", print)


def test_an_interpreter_that_does_not_run_is_refused_with_the_fix(tmp_path: Path) -> None:
    """WINDTUNNEL_SIM_PYTHON may name anything."""
    runner = ProcessRunner(tmp_path, Interpreter(tmp_path / "python", {}))
    with pytest.raises(RunnerUnavailable, match="WINDTUNNEL_SIM_PYTHON"):
        runner.ensure_image("image", print)


def test_an_interpreter_with_all_it_needs_is_accepted(runner: ProcessRunner) -> None:
    """And the user learns that no image is used."""
    said: list[str] = []
    runner.ensure_image("some-image", said.append)
    assert "some-image is not used" in said[0]


def test_a_file_is_followed_exactly_once_from_any_cursor(tmp_path: Path) -> None:
    """Lines ends, bytes that are no text, an unfinished last line and a very long one."""
    file = tmp_path / "log"
    long = b"x" * (MAX_LINE_BYTES + 10)
    file.write_bytes(b"one\r\n\ntw\xff\n" + long + b"\nend")
    expected = ["one", "", "tw\ufffd", "x" * MAX_LINE_BYTES, "x" * 10, "end"]
    batches = list(follow_file(file, None, lambda: False))
    assert [line.text for batch in batches for line in batch.lines] == expected
    for number, batch in enumerate(batches):
        rest = [line.text for later in batches[number + 1 :] for line in later.lines]
        again = [line.text for b in follow_file(file, batch.cursor, lambda: False) for line in b.lines]
        assert again == rest


def test_a_flood_of_empty_lines_comes_in_batches(tmp_path: Path) -> None:
    """A megabyte may be a million lines: none is lost, and not all are held at once."""
    file = tmp_path / "output.log"
    file.write_bytes(b"first" + b"\n" * 100_000 + b"last")
    batches = list(follow_file(file, None, lambda: False))
    assert max(len(batch.lines) for batch in batches) <= 20_000
    texts = [line.text for batch in batches for line in batch.lines]
    assert (texts[0], texts[-1], len(texts)) == ("first", "last", 100_001)
    assert set(texts[1:-1]) == {""}
