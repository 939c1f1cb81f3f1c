"""FailureReason and FinalMetricDataList."""

from __future__ import annotations

from pathlib import Path

import pytest

from windtunnel.job.next_step import next_step
from windtunnel.priceperf.instances import GIB
from windtunnel_local.service.ground.containers import ContainerState
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import LogEvent, MetricValue
from windtunnel_local.service.observed.metric_collector import MetricsUnavailable, Scanner
from windtunnel_local.service.running.failure_reason import failure_reason


def reason(folder: Path, code: int, oom: bool = False, limit: int = 32 * GIB) -> str:
    return failure_reason("algo-1", ContainerState("exited", code, oom), JobPaths(folder / "job"), limit)


def failure_file(folder: Path) -> Path:
    path = JobPaths(folder / "job").failure("algo-1")
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("oom", [False, True])
def test_a_reason_has_1024_characters_at_most(tmp_path: Path, oom: bool) -> None:
    """As SageMaker's: characters, not bytes. What the script wrote is cut, and nothing of what follows it."""
    failure_file(tmp_path).write_text("ü" * 2000)
    told = reason(tmp_path, 3, oom)
    start, _, end = told.partition(", exit code: 3")
    assert len(told) == 1024 and set(start.removeprefix("AlgorithmError: ")) == {"ü"}
    assert end.startswith("\nOutOfMemory: The memory limit") and end.endswith(".") if oom else not end


def test_a_failure_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """What it says is shown by clients that know nothing of escape sequences; its lines stay lines."""
    failure_file(tmp_path).write_bytes(b"two\n\tlines \x1b[2J\x9b31m\x07")
    assert reason(tmp_path, 1) == "AlgorithmError: two\n\tlines \\x1b[2J\ufffd31m\\x07, exit code: 1"


def test_without_a_file_the_exit_code(tmp_path: Path) -> None:
    """The reason is never empty."""
    assert reason(tmp_path, 3) == "AlgorithmError: Exit Code: 3"
    failure_file(tmp_path).write_text(" \n")
    assert reason(tmp_path, 3) == "AlgorithmError: Exit Code: 3"


def test_out_of_memory_names_limit_and_fix(tmp_path: Path) -> None:
    """With the engine's word for it. Without it something else has sent SIGKILL, and no limit is to blame."""
    told = reason(tmp_path, 137, oom=True, limit=2 * GIB)
    assert "OutOfMemory: The memory limit of host algo-1 is 2 GiB" in told
    assert told.index("local_cores=1") < told.index("WINDTUNNEL_MEMORY_GIB")
    killed = reason(tmp_path, 137)
    assert "docker kill" in killed and "WINDTUNNEL_MEMORY_GIB" not in killed
    assert next_step(killed).startswith("something killed the job's container")


def test_a_limit_that_was_all_the_machine_had_free_says_so(tmp_path: Path) -> None:
    """No setting raises it; a container whose limit is the job's says how to raise that."""
    folders = JobPaths(tmp_path / "job")
    for limit, advice in ((GIB, "had no more free"), (2 * GIB, "raise WINDTUNNEL_MEMORY_GIB")):
        state = ContainerState("exited", 137, oom_killed=True, memory_bytes=limit)
        told = failure_reason("algo-1", state, folders, 2 * GIB)
        assert f"is {limit // GIB} GiB" in told
        assert advice in told


def test_what_the_machine_was_short_of_is_no_matter_of_the_jobs_limit(tmp_path: Path) -> None:
    """The launcher has seen how much the container had; the engine says of both that it was memory."""
    said = "rank 1 exited; a process was ended because this machine's memory was full: all had 1 of 4 GiB"
    failure_file(tmp_path).write_text(said)
    assert reason(tmp_path, 1, oom=True) == f"AlgorithmError: {said}, exit code: 1"


def search(definitions: list[dict[str, str]], lines: list[str], cpu_limit_s: int = 60) -> list[MetricValue]:
    scanner = Scanner(definitions, cpu_limit_s)
    try:
        return scanner.search([LogEvent(i, 1000 * i, 0, line) for i, line in enumerate(lines)])
    finally:
        scanner.close()


def test_every_value_of_each_metric() -> None:
    """Several on a line count; what is no number, or none that CloudWatch takes, and what never came does not."""
    lines = ["loss=3 acc=0.1", "loss=2.5 loss=2.25", "loss=nope", "acc=1e-1", "loss=nan", "loss=inf"]
    definitions = [
        {"Name": "loss", "Regex": r"loss=(\S+)"},
        {"Name": "acc", "Regex": r"acc=([0-9.e-]+)"},
        {"Name": "never", "Regex": r"never=(\d)"},
    ]
    assert search(definitions, lines) == [
        MetricValue("loss", 0, 3.0),
        MetricValue("acc", 0, 0.1),
        MetricValue("loss", 1000, 2.5),
        MetricValue("loss", 1000, 2.25),
        MetricValue("acc", 3000, 0.1),
    ]


def test_the_states_of_a_progress_bar_are_lines() -> None:
    """One line of a megabyte, which `.*` would otherwise search from each of its characters."""
    bar = "\r".join(f"step {step} loss: {step / 100000}" for step in range(40_000))
    found = search([{"Name": "loss", "Regex": r".*loss: ([0-9.]+)"}], [bar])
    assert len(found) == 40_000
    assert found[-1].value == 0.39999


def test_an_expression_that_never_ends_is_given_up() -> None:
    """In the middle of a line, by itself: what the others find is found."""
    definitions = [{"Name": "hopeless", "Regex": "((a+)+)b"}, {"Name": "fine", "Regex": r"=(\d+)"}]
    scanner = Scanner(definitions)
    try:
        lines = [LogEvent(i, i, 0, "a" * 50 + f" ={i}") for i in range(1000)]
        assert [value.value for value in scanner.search(lines)] == list(range(1000))
        assert scanner.given_up == [("hopeless", "((a+)+)b")]
        assert [value.name for value in scanner.search(lines)] == ["fine"] * 1000
    finally:
        scanner.close()


def test_all_expressions_together_have_a_limit() -> None:
    """They cost a second of another process, not the server."""
    definitions = [{"Name": "fine", "Regex": "(a)"}, {"Name": "hopeless", "Regex": "((a+)+)b"}]
    with pytest.raises(
        MetricsUnavailable, match=r"fine, hopeless are not known: .* more than 1 s\. Simplify"
    ):
        search(definitions, ["a" * 50] * 1000, cpu_limit_s=1)
