"""A mistaken command line: what is wrong comes first, then what was likely meant."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.conftest import Invoke
from windtunnel.cli import main as cli
from windtunnel.cli.script_options import script_arguments
from windtunnel.cli.wording import worded
from windtunnel_local.__main__ import main as backend


def test_an_unknown_option_is_named_first(invoke: Invoke) -> None:
    """With what may have been meant, and where the command's options stand; not behind 30 lines of them."""
    said = invoke("logs", "j", "--folow", exits=2).err
    assert said == (
        "windtunnel logs: error: unrecognized arguments: --folow. Did you mean '--follow'?\n"
        "What it takes: windtunnel logs --help\n"
    )
    said = invoke("env", "--unst", exits=2).err  # of which it has several, one a shell
    assert "Did you mean '--unset'?\n" in said


def test_an_unknown_option_is_named_before_what_follows_from_it(invoke: Invoke) -> None:
    """argparse takes its value for a model's name, and complains that there are two."""
    said = invoke("plan", "--architecture", "Llama-3.1-8B", "--deadline-hours", "48", exits=2).err
    assert said == (
        "windtunnel plan: error: unrecognized arguments: --deadline-hours. Did you mean '--deadline'?\n"
        "What it takes: windtunnel plan --help\n"
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("download j -x d", {"name": "j", "directory": Path("d"), "extract": True}),
        ("download -x j d --aws", {"name": "j", "directory": Path("d"), "aws": True}),
        ("rm a --endpoint b c", {"names": ["a", "b", "c"], "endpoint": True}),
        ("stop a --aws b", {"names": ["a", "b"], "aws": True}),
    ],
)
def test_an_option_may_stand_between_two_names(words: str, named: dict[str, object]) -> None:
    """argparse alone calls the second name unrecognized."""
    given = vars(cli.build_parser().parse_args(words.split()))
    assert {name: given[name] for name in named} == named


@pytest.mark.parametrize("words", ["--foo", "cluster report --foo", "run --foo", "compare --foo"])
def test_an_unknown_option_is_named_before_what_is_missing(words: str, invoke: Invoke) -> None:
    """Whoever mistypes an option sees its name, also where the command lacks something else."""
    command = " ".join(("windtunnel", *words.split()[:-1]))
    said = invoke(*words.split(), exits=2).err
    assert said.startswith(f"{command}: error: unrecognized arguments: --foo.")


@pytest.mark.parametrize(
    "words", ["cluster --foo", "cluster create --foo", "cluster list --foo", "image --foo", "image --json --foo",
              "doctor --foo"]
)  # fmt: skip
def test_the_backends_commands_name_it_too(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In the same words."""
    with pytest.raises(SystemExit) as ended:
        backend(words.split())
    assert ended.value.code == 2
    command = " ".join(("windtunnel", *(word for word in words.split() if word[0] != "-")))
    assert capsys.readouterr().err == (
        f"{command}: error: unrecognized arguments: --foo.\nWhat it takes: {command} --help\n"
    )


@pytest.mark.parametrize(("command", "words"), [
    (cli.main, "check --dif train.py"), (cli.main, "compare --full-scale 3"), (backend, "image status --jso"),
    (backend, "cluster create --cluster-name c --cluster-conf f"),
])  # fmt: skip
def test_options_are_not_abbreviated(
    command: Callable[[list[str]], int], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What an abbreviation means could change with the next version's options."""
    with pytest.raises(SystemExit) as ended:
        command(words.split())
    assert ended.value.code == 2
    assert "error: unrecognized arguments: --" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "meant"), [
    ("--epochs 3 train.py", "train.py -- --epochs 3"),
    ("train.py --epochs 3 --instance-count 2 --fp16", "train.py --instance-count 2 -- --epochs 3 --fp16"),
    ("--source-dir src --debug --lr=0.1 train.py", "train.py --source-dir src -- --debug --lr=0.1"),
    ("--no-torch-distributed --debug train.py", "train.py --no-torch-distributed -- --debug"),
])  # fmt: skip
@pytest.mark.parametrize("command", ["run", "check"])
def test_options_of_the_script_are_put_where_they_belong(
    command: str, given: str, meant: str, invoke: Invoke
) -> None:
    """The command line that the message names is understood."""
    said = invoke(command, *given.split(), exits=2).err
    assert f"Options of the script come after it and --: windtunnel {command} {meant}\n" in said
    own, _, others = meant.partition(" -- ")
    assert cli.build_parser().parse_args([command, *own.split()]).script == "train.py"
    assert script_arguments(others.split())


@pytest.mark.parametrize(("words", "said"), [
    ("check chan.py --channel train=.", "--channel. It is an option of run."),
    ("check chan.py --max-run=2h", "--max-run=2h. It is an option of run."),
    ("compare --architecture BERT-Base --samples 9 --deadline 7d", "--deadline. It is an option of plan."),
    ("ps --tokens 3", "--tokens. It is an option of compare, plan."),
    ("run train.py --diff", "--diff. It is an option of check."),
    ("ps --foo", "--foo."),
    ("ps --instances trn1", "--instances."),  # an option of many commands
    ("compare j --instance p5", "--instance. Did you mean '--instances'?"),  # though inference has an --instance
])  # fmt: skip
def test_an_option_of_another_command_is_named_as_such(words: str, said: str, invoke: Invoke) -> None:
    """And not as one of the script's, which the job would fail with."""
    error = invoke(*words.split(), exits=2).err
    assert f"error: unrecognized arguments: {said}\n" in error


@pytest.mark.parametrize(("words", "said"), [
    ("plan Llama-3.1-8B --tokens -15B", "--tokens: '-15B': a whole number from 1 is needed"),
    ("plan Llama-3.1-8B --nodes 2 -4x", "--nodes: '-4x' is no whole number"),
    ("plan Llama-3.1-8B --deadline -48h", "--deadline: '-48h' is no time"),
    ("plan Llama-3.1-8B --budget -$2kk", "--budget: '-$2kk' is no number of dollars"),
    ("compare --architecture BERT-Base --tokens -.5M", "--tokens: '-.5M': a whole number from 1 is needed"),
])  # fmt: skip
def test_a_negative_amount_is_named(words: str, said: str, invoke: Invoke) -> None:
    """Also with a unit, which argparse takes for an option that leaves the one before it without its value."""
    assert said in invoke(*words.split(), exits=2).err


def test_an_instance_in_place_of_an_action_is_told_its_option(invoke: Invoke) -> None:
    """`windtunnel prices p5` is what one tries first."""
    said = invoke("prices", "p5", exits=2).err
    assert "windtunnel prices --instances p5\n" in said


def test_what_the_command_line_lacks_is_where_python_has_it(invoke: Invoke) -> None:
    """A trained model is deployed from Python; the page says how."""
    said = invoke("deploy", "j", exits=2).err
    page = "docs/how_to/deploy_a_model.md"
    assert f". In Python it is job.deploy(): {page}\n" in said
    assert Path(__file__).parents[4].joinpath(page).is_file()


@pytest.mark.parametrize(("words", "said"), [
    ("plan Llama-3.1-8B --budget 0", "--budget must be above 0"),
    ("plan Llama-3.1-8B --tensor-parallel 3", "--tensor-parallel 3 does not divide the 32 attention heads"),
    ("plan Llama-3.1-8B --lora-targets attention", "adapters are: give --lora-rank 16 too"),
    ("plan global_batch", "architecture 'global_batch' is not known"),
    ("plan nothing", "Hugging Face model, or a name that is known"),
    ("compare --architecture BERT-Base --samples 0", "--samples must be 1 or more"),
    ("compare --architecture BERT-Base --samples 9 --dataset-gib=-1", "--dataset-gib must be 0 or more, not -1"),
    ("compare --architecture BERT-Base --samples 9 --gradient-accumulation 3",
     "give --global-batch 256, or the samples of a pass: --microbatch 32"),
    ("compare --architecture BERT-Base --samples 9 --batch per-device",
     "give --global-batch 256, or the samples a worker: --batch-per-device 32"),
    ("compare --architecture BERT-Base --samples 9 --batch rehearsed",
     "--batch rehearsed has no effect: a described model has no rehearsal. State its batch: --batch 256"),
    ("compare --architecture BERT-Base --samples 9 --batch often",
     "--batch must be one of rehearsed, global, per-device, a global batch as 256"),
    ("compare --architecture BERT-Base --samples 9 --gpu zero=half", "zero must be one of none, optimizer, full"),
    ("compare --architecture BERT-Base --samples 9 --gpu layers=3", "--gpu knows microbatch, tensor_parallel"),
    ("compare --architecture BERT-Base --samples 9 --instances trn1 x 4", "takes TYPE or TYPE=N, such as"),
    ("compare --architecture BERT-Base --samples 9 --instances trn1:4", "takes TYPE or TYPE=N, such as"),
    ("compare --architecture BERT-Base --tokens 15 B", "'B' would be a job, but --tokens is of a model"),
    ("compare --architecture BERT-Base --samples 9 --software torch-titan", "Did you mean 'torchtitan' or"),
    ("run chan.py --rehearse 0", "from 1 to 100000 batches of each loader is needed"),
    ("check chan.py --instance-type ml.g5.12xlarge", "name its image with --image-uri, and take --aws."),
    ("check per_device/epochs.py --instance-type none", "--instance-type 'none' is no SageMaker instance type"),
    ("check per_device/epochs.py", "script 'per_device/epochs.py': there is no file"),
])  # fmt: skip
def test_an_error_has_the_command_lines_words(words: str, said: str, invoke: Invoke) -> None:
    """Whoever types options need not know the arguments of Python; names that were typed stay."""
    assert said in invoke(*words.split(), exits=2).err


def test_a_config_of_another_kind_is_told_which_option_takes_what(tmp_path: Path, invoke: Invoke) -> None:
    """Without Python's `Architecture`, the sentence lacked its object."""
    (tmp_path / "config.json").write_text('{"model_type": "ibert"}')
    said = "not 'ibert'. Give --architecture a config.json with one of these, if it is a plain encoder"
    assert said in invoke("compare", "--architecture", str(tmp_path), "--samples", "9", exits=2).err


def test_an_option_without_a_value_has_no_space_behind_it() -> None:
    """As where a job's name is taken."""
    text = "Give another job_name=, or wait=False."
    assert worded(ValueError(text), argparse.Namespace(job_name="a", wait=True)) == (
        "Give another --job-name, or --wait False."
    )


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("--channel gives source_dir twice", ["source_dir=a", "source_dir=b"]),
        ("architecture 'per_device' is not known", "per_device"),
        ("script 'nope/entry_point=.py' is no file", "nope/entry_point=.py"),
    ],
)
def test_what_was_typed_is_not_put_in_other_words(text: str, typed: object) -> None:
    given = argparse.Namespace(source_dir=None, per_device=None, given=typed)
    assert worded(ValueError(text), given) == text
