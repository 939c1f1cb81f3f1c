"""The command line: one clean message, the right exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import COMPLETES, FakeService
from windtunnel import ConfigurationError
from windtunnel.cli import main as cli
from windtunnel.cli.script_options import pairs, script_arguments, typed
from windtunnel.errors import BackendError


def test_run_follows_the_job(jobs: FakeService, invoke: Invoke) -> None:
    """`run` starts the job it describes, shows the log and names the next command."""
    line = "run train.py --source-dir src --job-name j --channel train=data --hp lr=0.1 --env A=1"
    out = invoke(*line.split(), "--local-cores", "2", "--", "--epochs", "3", "--flag").out
    request = jobs.requests["j"]
    values = {k: v for k, v in request["HyperParameters"].items() if not k.startswith("sagemaker_")}
    assert values == {"epochs": "3", "flag": "true", "lr": "0.1"}
    assert request["Environment"] == {"A": "1", "WINDTUNNEL_LOCAL_CORES": "2"}
    assert "three" in out
    assert "windtunnel report j" in out


def test_dry_run(jobs: FakeService, invoke: Invoke) -> None:
    """`run --dry-run` prints the request."""
    said = invoke("run", "src/train.py", "--dry-run", "--keep-alive", "600").out
    assert '"sagemaker_program": "\\"train.py\\""' in said
    assert '"KeepAlivePeriodInSeconds": 600' in said
    assert jobs.requests == {}


def test_what_sagemaker_takes_no_training_job_on_is_noted(jobs: FakeService, invoke: Invoke) -> None:
    """Before a job is started: its log says so too. A type that it takes gets no note."""
    refused = "note: instance_type='ml.inf2.xlarge': SageMaker offers it for endpoint and transform use only"
    line = ("src/train.py", "--instance-type", "ml.inf2.xlarge")
    assert refused in invoke("run", *line, "--dry-run").err
    assert refused in invoke("check", *line).out
    assert "note: instance_type" not in invoke("check", "src/train.py").out


def test_a_job_whose_argparse_would_refuse_a_flag_is_not_started(
    jobs: FakeService, invoke: Invoke, project: Path
) -> None:
    """`run` says so before a container starts, `check` counts it among its findings."""
    flag = 'import argparse\nargparse.ArgumentParser().add_argument("--fast", action="store_true")\n'
    (project / "src" / "flag.py").write_text(flag)
    line = ("src/flag.py", "--", "--fast")
    said = invoke("run", *line, exits=2).err
    assert said.startswith("windtunnel: src/flag.py:2: --fast is a flag without a value")
    assert jobs.requests == {}
    assert "src/flag.py:2: --fast is a flag without a value" in invoke("check", *line, exits=1).out
    (project / "src" / "flag.py").write_text(flag.replace('action="store_true"', "type=bool"))
    said = invoke("run", *line, "False", exits=2).err
    assert "src/flag.py:2: --fast False reaches the script as text" in said
    invoke("run", "src/flag.py", "--job-name", "j")


def test_a_channel_or_metric_that_is_given_twice_is_refused(jobs: FakeService, invoke: Invoke) -> None:
    """The job would train without the first one's data, and nobody would know; --hp and --env take the last."""
    run = ["run", "src/train.py", "--job-name", "j", "--hp", "a=1", "--hp", "a=2"]
    said = invoke(*run, "--channel", "train=data", "--channel", "train=src", exits=2).err
    assert "--channel gives train twice" in said
    said = invoke(*run, "--metric", "loss=a([0-9]+)", "--metric", "loss=b([0-9]+)", exits=2).err
    assert "--metric gives loss twice" in said
    invoke(*run)
    assert jobs.requests["j"]["HyperParameters"]["a"] == "2"


def test_failed_job_exits_1(jobs: FakeService, invoke: Invoke) -> None:
    """The failure's message, without a traceback."""
    jobs.script = (*COMPLETES[:-1], ("Failed", "Failed", "", {}))
    jobs.failure = "AlgorithmError: no"
    assert "failed: AlgorithmError: no" in invoke("run", "src/train.py", "--job-name", "j", exits=1).err


@pytest.mark.parametrize("more", [[], ["--rehearse", "5"]])
@pytest.mark.parametrize(
    ("secondary", "why"), [("MaxRuntimeExceeded", "it reached max_run (30 s)"), ("Stopped", "it was stopped")]
)
def test_a_job_that_did_not_complete_exits_1(
    jobs: FakeService, invoke: Invoke, secondary: str, why: str, more: list[str]
) -> None:
    """A shell or a CI must not take it for a trained model; no price of the whole is offered."""
    jobs.script = (*COMPLETES[:-1], ("Stopped", secondary, "", {}))
    captured = invoke("run", "src/train.py", "--job-name", "j", "--max-run", "30", *more, exits=1)
    assert f"Job ended as Stopped, not Completed: {why}." in captured.out
    assert "would take and cost" not in captured.out


def test_a_job_that_was_refused_before_it_began_exits_2(
    jobs: FakeService, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    """Whatever refused it; 1 is of a job that there was."""
    line = ["run", "src/train.py", "--job-name", "j"]
    for more in ([], ["--dry-run"]):
        assert "the Regex of 'x' has no group" in invoke(*line, *more, "--metric", "x=abc", exits=2).err
    invoke(*line, "--no-wait")
    assert "nothing was uploaded" in invoke(*line, exits=2).err

    def away(_: object) -> None:
        raise BackendError("it does not start")

    monkeypatch.setattr(jobs, "create_job", away)
    assert invoke("run", "src/train.py", exits=2).err.endswith("windtunnel: it does not start\n")


def test_ctrl_c_exits_130(jobs: FakeService, invoke: Invoke) -> None:
    """Detaching says how to come back."""
    jobs.interrupt_reading = True
    assert "windtunnel logs -f j" in invoke("run", "src/train.py", "--job-name", "j", exits=130).err


def test_ctrl_c_of_any_command_says_what_it_was(
    jobs: FakeService, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    """A line that is not empty."""

    def interrupted(*_: object) -> list[dict[str, Any]]:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "list_jobs", interrupted)
    assert invoke("ps", exits=130).err == "\nwindtunnel: interrupted\n"


@pytest.mark.parametrize(("handler", "code"), [("default_int_handler", 130), ("SIG_IGN", 0)])
def test_ctrl_c_before_the_commands_are_imported_ends_quietly(handler: str, code: int) -> None:
    """It printed a traceback out of an import. Where Ctrl-C is ignored, it stays so."""
    program = f"""
import os, signal, sys

signal.signal(signal.SIGINT, signal.{handler})

class Interrupting:
    def find_spec(self, name, *_):
        if name == "windtunnel.cli.plan":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from windtunnel.cli.start import main
sys.argv = ["windtunnel", "--version"]
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == code
    assert done.stderr == ("\nwindtunnel: interrupted\n" if code else "")


@pytest.mark.parametrize(
    "words", [["logs", "x", "\x1b[2J"], ["run", "t.py", "--\x1b[2J"], ["ps", "--", "\x1b[2J"]]
)
def test_a_terminal_does_not_obey_what_was_mistyped(words: list[str], invoke: Invoke) -> None:
    """Nor what a script of somebody's put on the command line."""
    said = invoke(*words, exits=2).err
    assert "\\x1b[2J" in said
    assert "\x1b" not in said


def test_ps_logs_stop(jobs: FakeService, invoke: Invoke) -> None:
    """The commands for jobs that exist."""
    assert invoke("ps").err == "No training jobs.\n"
    started = invoke("run", "src/train.py", "--job-name", "j", "--no-wait")
    assert started.out == "Training job j\n"
    assert "windtunnel logs -f j" in started.err
    invoke("stop", "j")
    assert jobs.stopped == ["j"]
    assert invoke("logs", "-f", "j").out.split() == ["one", "two", "three", "four"]
    assert "ended already: Completed" in invoke("stop", "j").out
    assert invoke("ps").out.splitlines()[1].split()[:2] == ["j", "Completed"]
    assert invoke("ps", "--status", "InProgress").err == "No training jobs are InProgress.\n"
    invoke("logs", "nope", exits=1)


def test_what_a_script_imports_from_beside_it_is_named_before_it_runs(
    jobs: FakeService, invoke: Invoke
) -> None:
    """Once, unless it is sent too. A folder of data is no package, whatever its name."""
    Path("src/helper.py").write_text("")
    Path("src/datasets").mkdir()
    Path("src/datasets/a.txt").write_text("")
    Path("src/train.py").write_text(f"import datasets\nimport helper\nimport train\nimport {'a' * 300}\n")
    told = invoke("run", "src/train.py", "--no-wait").err
    assert told.startswith("windtunnel: warning: src/train.py imports helper from its own directory")
    for more in (("train.py", "--source-dir", "src"), ("src/train.py", "--dependency", "src/helper.py")):
        assert "imports" not in invoke("run", *more, "--no-wait").err


def test_what_is_nested_too_deeply_to_be_read_is_an_error_of_ours(project: Path, invoke: Invoke) -> None:
    """Python's parser takes it, and what walks its tree does not."""
    (project / "src" / "train.py").write_text(f"import torch\nx = model{'.cuda()' * 250}\n")
    assert "nested too deeply" in invoke("check", "src/train.py", exits=2).err


def test_several_jobs_are_stopped_whatever_becomes_of_one(jobs: FakeService, invoke: Invoke) -> None:
    """As `rm` deletes them: what a name is wrong for is said, and the others stop."""
    for name in ("a", "b"):
        invoke("run", "src/train.py", "--job-name", name, "--no-wait")
    assert invoke("ps", "--quiet", "--status", "InProgress").out.split() == ["b", "a"]
    assert "nope" in invoke("stop", "a", "nope", "b", "a", exits=1).err
    assert jobs.stopped == ["a", "b"]


def test_a_job_that_waits_says_so(jobs: FakeService, invoke: Invoke) -> None:
    """It prints nothing yet: `ps` and `logs` say that it is Pending, and behind what."""
    jobs.script = (("InProgress", "Pending", "waiting for 2 cores", {}), *COMPLETES)
    invoke("run", "src/train.py", "--job-name", "j", "--no-wait")
    assert invoke("ps").out.splitlines()[1].split()[:2] == ["j", "Pending"]
    jobs.script = (jobs.script[0], jobs.script[0], *jobs.script)  # `ps` asks for the job, too
    assert invoke("logs", "j") == ("", "windtunnel: j is Pending: waiting for 2 cores\n")


def test_check(jobs: FakeService, invoke: Invoke) -> None:
    """Findings first, their number last and in the exit code; notes and --diff leave it 0."""
    Path("src/helper.py").write_text("")
    Path("src/train.py").write_text("import helper\nmodel.cuda()\n")
    out = invoke("check", "src/train.py", exits=1).out
    assert "note: imports helper from its own directory" in out
    assert "note: imports nothing that uses a NeuronCore" in out
    assert out.startswith("src/train.py:2: device_unused: .cuda() does not exist on Trainium")
    assert (
        "Also read, as the script imports them: src/helper.py.\nNot checked: what the script does when it runs.\n"
        in out
    )
    assert "ok" not in out
    assert out.endswith("\n1 finding; with --diff, check prints the edits of 1.\n")
    printed = invoke("check", "src/train.py", "--diff")
    assert "-model.cuda()\n" in printed.out and printed.out.startswith("--- a/src/train.py\n")
    assert "--follow-symlinks" not in printed.err
    Path("src/train.py").rename("train.py")
    Path("src/train.py").symlink_to("../train.py")  # which patch leaves alone
    assert "symbolic links: src/train.py" in invoke("check", "src/train.py", "--diff").err
    Path("src/train.py").unlink()
    assert printed.err == ""
    Path("src/train.py").write_text("import torch_xla, helper\n")
    out = invoke("check", "train.py", "--source-dir", "src").out
    assert "note:" not in out and out.endswith("\nok: no findings.\n")
    Path("src/requirements.txt").write_text(
        "Transformers[torch] == 4.21.0\ntorch_xla==2.9\ntorch>2\nseaborn==1\n"
    )
    lines = invoke("check", "train.py", "--source-dir", "src").out.splitlines()
    (note,) = (line for line in lines if "note:" in line)
    assert lines[-1] == "ok: no findings; 1 note above."
    assert "requirements.txt asks for Transformers 4.21.0, but the training image has 4." in note
    Path("src/train.py").write_text("import torch_xla, neuronx_distributed\n")
    assert (
        "neuronx_distributed is not in the image"
        in invoke("check", "train.py", "--source-dir", "src", exits=1).out
    )
    assert "not in the image" not in invoke("check", "src/train.py", "--image-uri", "own:1").out
    Path("src/requirements.txt").write_text("neuronx-distributed\n")
    assert "ok: no findings.\n" in invoke("check", "train.py", "--source-dir", "src").out
    Path("src/train.py").write_text("def (:\n")
    assert "line 1" in invoke("check", "src/train.py", exits=2).err
    assert jobs.requests == {}


def test_words() -> None:
    """Script arguments and KEY=VALUE pairs become hyperparameters of their types."""
    assert script_arguments(["--a", "1", "--b=x=y", "--c", "--d", "-1"]) == {
        "a": "1",
        "b": "x=y",
        "c": "true",
        "d": "-1",
    }
    assert [typed(x) for x in ("3", "0.5", "true", "null", "a b")] == [3, 0.5, True, None, "a b"]
    assert [typed(x) for x in ("1e6", "1E2", "1e-4")] == [1_000_000, 100, 0.0001], (
        "type=int reads whole numbers"
    )
    as_typed = ("1.10", "0.50", "-0", "3.00000000000000000001", "1e999", "NaN", "Infinity")
    assert [typed(x) for x in as_typed] == list(as_typed), "as numbers they would reach the script changed"
    assert typed("[" * 2000) == "[" * 2000
    with pytest.raises(ConfigurationError, match="named arguments only"):
        script_arguments(["train"])
    with pytest.raises(ConfigurationError, match="KEY=VALUE"):
        pairs(["x"], "--hp")
    with pytest.raises(ConfigurationError, match="--channel 'x': NAME=PATH"):
        pairs(["x"], "--channel", "NAME=PATH")


@pytest.mark.parametrize(
    ("words", "meant"), [(["doctr"], "'doctor'"), (["prices", "refrsh"], "'refresh'"), (["fly"], None)]
)
def test_a_mistyped_word_is_told_the_likely_one(words: list[str], meant: str | None, invoke: Invoke) -> None:
    """Of thirty commands and of an argument's choices; nothing where nothing is near. The exit code is 2."""
    said = invoke(*words, exits=2).err
    assert "invalid choice" in said
    assert (f"Did you mean {meant}?" in said) if meant else ("Did you mean" not in said)


def test_what_no_command_takes_behind_two_dashes_is_refused(jobs: FakeService, invoke: Invoke) -> None:
    """Before anything is done: it was ignored, as a second name of `rm`."""
    invoke("run", "src/train.py", "--job-name", "j")
    said = invoke("rm", "j", "--", "k", exits=2).err
    assert said == "windtunnel: rm takes nothing after --, and did nothing; given: k\n"
    assert list(jobs.requests) == ["j"]


def cannot_write(words: list[str], home: Path, *, full: bool, unbuffered: str = "") -> tuple[int, str]:
    """Exit code and stderr of a command whose output goes to a full disk, or to a reader that has gone.

    Started as a module, for shells whose PATH has no scripts.
    """
    reading, writing = os.pipe()
    os.close(reading)
    with Path("/dev/full").open("w") as disk, os.fdopen(writing, "w") as pipe:
        run = subprocess.run(
            [sys.executable, "-m", "windtunnel", *words],
            stdout=disk if full else pipe, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "WINDTUNNEL_HOME": str(home)},
        )  # fmt: skip
    return run.returncode, run.stderr


@pytest.mark.parametrize("words", [["calibrate", "--show"], ["run", "--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("full", [True, False])
def test_what_cannot_be_written_is_said_in_a_line(
    full: bool, unbuffered: str, words: list[str], tmp_path: Path
) -> None:
    """Also where it is so little that it is written as Python ends; nothing where the reader has gone."""
    said = "windtunnel: [Errno 28] No space left on device\n" if full else ""
    assert cannot_write(words, tmp_path / "home", full=full, unbuffered=unbuffered) == (1, said)


def test_what_the_backends_commands_cannot_write_is_said_in_a_line(tmp_path: Path) -> None:
    """As of all others; nothing to a reader that has enough, such as `head -1`."""
    words = ["cluster", "--help"]
    said = "windtunnel: [Errno 28] No space left on device\n"
    assert cannot_write(words, tmp_path / "home", full=True) == (1, said)
    assert cannot_write(words, tmp_path / "home", full=False, unbuffered="1") == (1, "")


@pytest.mark.parametrize("command", ["plan --architecture X", "compare", "inference", "prices", "report"])
def test_instances_are_listed_with_blanks_or_commas(command: str) -> None:
    """The same in all commands."""
    parser = cli.build_parser()
    for words in (["trn1", "p4d"], ["trn1,p4d"], ["trn1,", "p4d"], ["TRN1, P4D"]):
        parsed = parser.parse_args([*command.split(), "--instances", *words])
        assert parsed.instances == ["trn1", "p4d"]
    with pytest.raises(SystemExit):
        parser.parse_args([*command.split(), "--instances", ","])


@pytest.mark.parametrize(
    ("given", "subject", "instances"),
    [
        ("report --instances trn1 ml.p4d.24xlarge my-job", "my-job", ["trn1", "ml.p4d.24xlarge"]),
        ("compare --json --instances trn1,p4d a/counters.json --batch 8", "a/counters.json", ["trn1", "p4d"]),
        ("plan --instances trn1 Qwen3-8B", "Qwen3-8B", ["trn1"]),
        ("compare --instances trn1 trn1=4 p4d my-job", "my-job", ["trn1", "trn1=4", "p4d"]),
        ("compare --architecture BERT-Base --instances trn1 wrong", None, ["trn1", "wrong"]),
        ("compare my-job --instances trn1 wrong", "my-job", ["trn1", "wrong"]),
        ("report --instances trn1 two jobs", None, ["trn1", "two", "jobs"]),
        ("report --instances wrong", None, ["wrong"]),
    ],
)
def test_what_stands_behind_the_instances_is_the_job(
    given: str, subject: str | None, instances: list[str]
) -> None:
    """One word that looks like no instance, unless a model is given; argparse would take it for one."""
    parsed = cli.build_parser().parse_args(given.split())
    assert (parsed.model if "model" in parsed else parsed.job) == subject
    assert parsed.instances == instances


def test_a_model_where_a_job_is_expected_is_told_so(jobs: FakeService, invoke: Invoke) -> None:
    """Where there is no job of that name."""
    assert jobs
    for model in ("bert-base", "mistral-7b"):
        for command in ("compare", "describe", "report", "logs", "stop"):
            assert f"windtunnel compare --architecture {model}" in invoke(command, model, exits=1).err
