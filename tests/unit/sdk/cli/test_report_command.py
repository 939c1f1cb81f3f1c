"""`windtunnel report` and `windtunnel compare` on the command line."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.fakes.split_job import split_counters
from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService


@pytest.fixture
def counted(counters_file: Callable[[Any], str], counters: Any) -> str:
    """A counters.json on disk."""
    return counters_file(counters())


def test_published_as_text_and_json(invoke: Invoke) -> None:
    """Both forms, exit code 0."""
    assert "41.435" in invoke("report", "--published").out
    assert json.loads(invoke("report", "--published", "--json").out)["rows"][0]["published_cost_usd"] == 41.47


def test_compare_models_a_counted(invoke: Invoke, counted: str) -> None:
    """Sizes and instances reach the model."""
    sizes = (
        "--full-scale-samples",
        "1000000",
        "--epochs",
        "2",
        "--instances",
        "trn1.32xlarge",
        "ml.p4d.24xlarge",
    )
    data = json.loads(invoke("compare", counted, "--json", "--nodes", "2", *sizes).out)
    assert data["full_scale"]["epochs"] == 2
    assert [item["instance_type"] for item in data["estimates"]] == [
        "ml.trn1.32xlarge",
        "ml.p4d.24xlarge",
    ]
    assert {item["instance_count"] for item in data["estimates"]} == {2}
    assert {item["global_batch"] for item in data["estimates"]} == {8 * 32 * 2}
    assert [item["priced_as"] for item in data["estimates"]] == ["trn1.32xlarge", "ml.p4d.24xlarge"]
    assert data["estimates"][0]["costs"][0]["price"]["offering"] == "EC2 on-demand"


LLAMA = (
    "compare", "--architecture", "Llama2-7B", "--sequence-length", "4096", "--tensor-parallel", "8",
    "--global-batch", "1024",
)  # fmt: skip
BERT = (
    "compare",
    "--architecture",
    "BERT-Base",
    "--sequence-length",
    "128",
    "--full-scale-samples",
    "9999999",
)


def test_compare_models_a_description(invoke: Invoke) -> None:
    """Settings, those of GPUs, counts of each type, day and scaling reach the model."""
    more = (
        "--full-scale-samples", "1000000", "--zero", "optimizer", "--gpu", "tensor-parallel=1",
        "--gpu", "zero=full", "--instances", "ml.trn1.32xlarge=4", "ml.p4d.24xlarge=2",
        "--on", "2025-06-01", "--scaling", "weak", "--json",
    )  # fmt: skip
    data = json.loads(invoke(*LLAMA, *more).out)
    trn1, p4d = data["estimates"]
    assert (trn1["instance_count"], p4d["instance_count"]) == (4, 2)
    assert (trn1["split"]["tensor_parallel"], trn1["split"]["zero"]) == (8, "optimizer")
    assert (p4d["split"]["data_parallel"], p4d["split"]["zero"]) == (16, "full")
    assert [decision["on"] for decision in data["decisions"]] == ["2025-06-01"]
    assert [(table["mode"], len(table["rows"])) for table in data["scaling"]] == [("weak", 7)] * 2
    text = invoke(*LLAMA, *more[:-1], "--full").out
    assert "WHO IS CHEAPEST" in text
    assert "SCALING ON ML.P4D.24XLARGE" in text


def test_the_size_of_an_epoch_is_said_in_tokens_too(invoke: Invoke) -> None:
    """As to `plan`: in sequences of the description's length, the last one whole."""
    data = json.loads(invoke(*LLAMA, "--tokens", "4097", "--json").out)
    assert data["full_scale"]["train_samples"] == 2
    assert json.loads(invoke(*LLAMA, "--tokens", "1B", "--json").out)["full_scale"]["train_samples"] == 244141


def test_a_length_that_nobody_gave_is_said_to_be_assumed(invoke: Invoke) -> None:
    """As plan says it: twice the length is more than twice the bill."""
    described = ("compare", "--architecture", "Llama-3.1-8B", "--global-batch", "1024", "--samples", "1M")
    assert "Not given, so assumed: sequences of 8,192 tokens." in invoke(*described).out
    assert "so assumed" not in invoke(*described, "--sequence-length", "8192").out


@pytest.mark.parametrize(
    ("model", "length", "said"),
    [
        ("GPT-2", "4096", "positions for 4,096 tokens (the model has 1,024)"),
        ("GPT-2", "1024", None),
        ("Mistral-7B", "32768", "full attention (the model's window of 4,096 tokens takes less)"),
        ("Mistral-7B", "4096", None),
    ],
)
def test_a_sequence_longer_than_a_model_is_made_for_is_said(
    invoke: Invoke, model: str, length: str, said: str | None
) -> None:
    """In a comparison and a plan alike, also as data: it is modelled as if the model were made for it."""
    size = ("--samples", "100000", "--global-batch", "1024", "--sequence-length", length, "--json")
    for command in (("compare", "--architecture", model), ("plan", model, "--nodes", "8")):
        assert json.loads(invoke(*command, *size).out)["assumed"] == ([] if said is None else [said])


def test_a_description_without_a_batch_is_of_the_one_that_plan_assumes(invoke: Invoke) -> None:
    """Said in the headline, and as data, whatever else is stated; a batch or passes that are given are as given."""
    text = invoke(*LLAMA[:-2], "--full-scale-samples", "1000000").out + invoke("plan", *LLAMA[1:3]).out
    assert text.count("1,024 sequences a step.") == 2 and " 1,024 (" in text
    for given, assumed in (
        ("", True),
        ("--microbatch 1", True),
        ("--microbatch 1 --tensor-parallel 8 --recompute selective", True),
        ("--microbatch 1 --gradient-accumulation 4", False),
        ("--microbatch 1 --batch 64", False),
        ("--microbatch 1 --batch per-device", False),
        ("--batch-per-device 4", False),
    ):
        words = ("--full-scale-samples", "1000000", "--nodes", "4", *given.split(), "--json")
        said = json.loads(invoke(*LLAMA[:-2], *words).out)
        assert said["assumed"] == (["1,024 sequences a step"] if assumed else []), given
        assert ({item["global_batch"] for item in said["estimates"]} == {1024}) == assumed, given


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report",), "name a job"),
        (("report", "counters.json"), "windtunnel compare counters.json"),
        (("report", "job", "--published"), "--published takes no job"),
        (("report", "--published", "--price", "ml.p4d.24xlarge=1"), "no options of a job (given: --price)"),
        (
            ("report", "--published", "--epochs", "2", "--batch", "8"),
            "no options of a job (given: --epochs, --batch)",
        ),
        (("report", "job", "--instances", "trn1=4"), "windtunnel compare job --instances trn1=4"),
        (("compare", "/nowhere/counters.json"), "cannot read"),
        (("compare",), "--architecture NAME"),
        (("compare", "--architecture", "", "--samples", "9"), "architecture '' is not known"),
        (("compare", "--zero", "full"), "--zero describes a model"),
        (
            ("compare", "--architecture", "BERT-Large"),
            "needs the size of an epoch: --samples N (sequences) or --tokens N",
        ),
        (LLAMA, "needs the size of an epoch"),
        ((*LLAMA, "--samples", "9", "--tokens", "9"), "--samples and --tokens both say the size"),
        (("compare", "counters.json", "--tokens", "9"), "state its samples: --samples N"),
        ((*LLAMA, "--full-scale-samples", "9", "--gpu", "tensor_parallel"), "NAME=VALUE"),
        ((*LLAMA, "--full-scale-samples", "9", "--batch-per-device", "16"), "give one"),
        ((*LLAMA, "--full-scale-samples", "9", "--batch", "64"), "give one"),
        ((*LLAMA, "--full-scale-samples", "9", "--price", "ml.p5.48xlarge"), "TYPE=USD"),
        (
            (*LLAMA, "--full-scale-samples", "9", "--price", "p4d.24xlarge=20"),
            "names no instance of this report",
        ),
        (
            (
                *LLAMA,
                *("--full-scale-samples", "9"),
                *("--price", "ml.p4d.24xlarge=20", "--price", "p4d=2"),
            ),
            "twice",
        ),
        (
            (*LLAMA, "--full-scale-samples", "9", "--gpu", "zero=full", "--gpu", "zero=none"),
            "--gpu gives zero twice",
        ),
        ((*LLAMA, "--full-scale-samples", "9", "--instances", "ml.trn1.32xlarge=two"), "TYPE=N"),
        (
            (*LLAMA, *("--full-scale-samples", "9", "--gpu", "zero=full", "--instances", "trn1")),
            "--gpu has no effect: no instance has GPUs (ml.trn1.32xlarge)",
        ),
        (
            (*LLAMA, *("--samples", "9", "--neuron-version", "2.21", "--instances", "p4d", "p5")),
            "--neuron-version has no effect: no instance has NeuronCores (ml.p4d.24xlarge, ml.p5.48xlarge)",
        ),
        (
            (*LLAMA, "--samples", "9", "--nodes", "4", "--batch", "global", "--instances", "trn1=2", "p4d=3"),
            "--nodes has no effect: each instance has its own number (trn1=2, p4d=3)",
        ),
        ((*LLAMA, "--full-scale-samples", "9", "--instances", "ml.trn1.2xlarge"), "multiple of 4 instances"),
        ((*LLAMA, "--samples", "9", "--instances", "ml.p9.48xlarge"), "Known: ml.trn1.2xlarge"),
    ],
)
def test_mistakes_name_the_fix(invoke: Invoke, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2 and one line on stderr."""
    assert message in invoke(*arguments, exits=2).err


def test_settings_of_gpus_have_an_effect_on_those_that_cannot_run_the_job(invoke: Invoke) -> None:
    words = "--samples 9 --gpu tensor_parallel=1 --price ml.p4d.24xlarge=9 --instances trn1=1 p4d=256"
    said = " ".join(invoke(*LLAMA, *words.split()).out.split())
    assert "NOT MODELLED, p4d.24xlarge x 256:" in said


def test_a_job_is_described_only_where_its_cores_share_a_model(
    invoke: Invoke, counted: str, tmp_path: Path
) -> None:
    """One that was counted is what it is; of the other, what is stated is other and the rest as rehearsed."""
    (tmp_path / "llama.json").write_text(json.dumps(split_counters()))
    for more in (("--zero", "full"), ("--architecture", "BERT-Large")):
        assert f"{more[0]} describes a model" in invoke("compare", counted, *more, exits=2).err
    llama = ("compare", str(tmp_path / "llama.json"), "--instances", "ml.trn1.32xlarge", "--json")
    found = json.loads(invoke(*llama, "--architecture", "Llama-3.1-8B", "--microbatch", "2").out)
    assert found["workload"]["microbatch"] == 2 and found["workload"]["architecture"]["layers"] == 32
    assert found["estimates"][0]["global_batch"] == 256
    said = invoke(*llama, "--global-batch", "512", "--nodes", "4").out
    assert json.loads(said)["estimates"][0]["global_batch"] == 512
    assert json.loads(invoke(*llama, "--nodes", "4").out)["estimates"][0]["global_batch"] == 4 * 256
    for size in ((), ("--samples", "5000")):
        said = invoke(*llama, "--sequence-length", "8192", *size).out
        assert json.loads(said)["workload"]["sequence_length"] == 8192
    stated = ("--full-scale-samples", "5000", "--sequence-length", "512", "--json")
    assert json.loads(invoke("compare", counted, *stated).out)["full_scale"]["sequence_length"] == 512


def test_a_batch_of_a_pass_and_its_number_say_how_large_a_step_is(invoke: Invoke) -> None:
    """As transformers' Trainer has them: 32 a device, 4 times accumulated."""
    said = invoke(*BERT, "--batch-per-device", "32", "--gradient-accumulation", "4", "--json").out
    for item in json.loads(said)["estimates"]:
        workers = item["split"]["data_parallel"]
        assert item["global_batch"] == 32 * 4 * workers
        assert (item["split"]["passes"], item["split"]["sequences_per_pass"]) == (4, 32)
    assert "--microbatch 32" in invoke(*BERT, "--gradient-accumulation", "4", exits=2).err


@pytest.mark.parametrize("place", ["config.json", "."])
def test_a_models_own_configuration_describes_it(invoke: Invoke, tmp_path: Path, place: str) -> None:
    """The file or its folder, for `compare` and `plan`; one that cannot be read is told."""
    config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = (
        "--architecture",
        str(tmp_path / place),
        "--sequence-length",
        "1024",
        "--global-batch",
        "256",
        "--json",
    )
    title = json.loads(invoke("compare", *model, "--full-scale-samples", "99999").out)["title"]
    assert tmp_path.name[:20] in title and "124 M parameters" in title
    assert json.loads(invoke("plan", *model, "--tokens", "1B", "--nodes", "1").out)["plans"]
    (tmp_path / "config.json").write_text("[")
    assert "cannot read the model's configuration" in invoke("plan", *model, exits=2).err


def fail(error: Exception, *_: Any, **__: Any) -> None:
    """As what downloads does."""
    raise error


def test_a_model_of_the_hub_is_described_by_its_configuration(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of the cache, which is asked first. What is not there, and without a network cannot be had, is told."""
    cached = tmp_path / "models--some--gpt2"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs/main").write_text("1")
    (cached / "snapshots/1").mkdir(parents=True)
    config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    (cached / "snapshots/1/config.json").write_text(json.dumps(config))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    text = invoke("compare", "--architecture", "some/gpt2", "--global-batch", "256", "--samples", "9e6").out
    assert "Windtunnel comparison: some/gpt2, 124 M parameters" in text
    for name, why in (
        ("some/other", "cannot be had from the Hugging Face hub"),
        ("so--me/GPT2", "GPT2 is known here without it"),
    ):
        said = invoke("plan", "--architecture", name, exits=2).err
        assert why in said and "give its config.json" in said
    for error in (
        OSError("401 Client Error.\n\nAccess is restricted.\nPlease log in."),
        RuntimeError("Please log in"),
    ):
        monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", partial(fail, error))
        assert "Please log in): give its config.json" in invoke("plan", "--architecture", "a/b", exits=2).err
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install 'windtunnel[hub]'" in invoke("plan", "--architecture", "some/gpt2", exits=2).err


def test_a_hub_that_is_out_of_reach_is_not_waited_for(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own client asks again and again, for 23 s."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/{{repo_id}}/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", url)
    monkeypatch.setattr("time.sleep", slept := Mock())
    said = invoke("plan", "--architecture", "some/other", exits=2).err
    assert "Connection refused): give its config.json" in said
    slept.assert_not_called()


def test_the_vocabulary_head_of_a_classifier_is_left_out(invoke: Invoke) -> None:
    """It computes, and so takes time."""
    seconds = []
    for part in ("1", "0.15", "0"):
        said = invoke(*BERT, "--global-batch", "1024", "--head-part", part, "--json").out
        seconds.append(json.loads(said)["estimates"][1]["step"]["total_s"])
    assert seconds[0] > 1.1 * seconds[1] > 1.1 * seconds[2]


def test_a_scaling_table_has_the_batch_of_the_answer(invoke: Invoke) -> None:
    """Strong: on any number of instances; weak: its part of a worker."""
    for batch, nodes in ((("--batch-per-device", "64"), "1"), (("--batch", "65536"), "4")):
        for mode in ("strong", "weak"):
            data = json.loads(invoke(*BERT, *batch, "--nodes", nodes, "--scaling", mode, "--json").out)
            for item, table in zip(data["estimates"], data["scaling"], strict=True):
                for row in table["rows"]:
                    part = row["instances"] / int(nodes) if mode == "weak" else 1
                    assert row["global_batch"] == item["global_batch"] * part


def test_a_price_of_ones_own_is_taken_and_named(invoke: Invoke, counted: str) -> None:
    """An instance without a price in the book has a cost, and the screen says whose price it is."""
    names = ("--full-scale-samples", "3.6M", "--instances", "ml.trn1.32xlarge", "ml.p5.48xlarge", "--price")
    for job, price in ((LLAMA, "P5=$60"), (("compare", counted), "ml.p5.48xlarge=$60")):
        text = invoke(*job, *names, price).out
        assert "no price" not in text
        assert "p5.48xlarge: as you state it" in text


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_file_that_is_no_counters_is_refused(invoke: Invoke, tmp_path: Path, content: str) -> None:
    """No traceback for a wrong file."""
    path = tmp_path / "counters.json"
    path.write_text(content)
    assert "windtunnel:" in invoke("compare", str(path), exits=2).err


def test_files_instead_of_text(invoke: Invoke, tmp_path: Path, counted: str) -> None:
    """--html, --markdown and --png write and say so on stderr; --json still prints."""
    pytest.importorskip("matplotlib")
    page, picture = tmp_path / "report.html", tmp_path / "charts.png"
    captured = invoke("compare", counted, "--html", str(page), "--png", str(picture))
    assert captured.out == ""
    assert captured.err.splitlines() == [f"wrote {page}", f"wrote {picture}"]
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert picture.read_bytes().startswith(b"\x89PNG")
    comment, comment_in_full = tmp_path / "answer.md", tmp_path / "full.md"
    said = invoke("compare", counted, "--markdown", str(comment), "--json").out
    assert json.loads(said)["schema"] == "windtunnel.comparison/1"
    invoke("compare", counted, "--markdown", str(comment_in_full), "--full")
    answer, in_full = comment.read_text(encoding="utf-8"), comment_in_full.read_text(encoding="utf-8")
    assert answer.startswith("## ") and "### The answer" in answer and len(in_full) > 2 * len(answer)


def test_a_dash_is_stdout(
    invoke: Invoke, tmp_path: Path, counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with other commands: a pipe gets the text, and no file of that name is left behind."""
    monkeypatch.chdir(tmp_path)
    captured = invoke("compare", counted, "--markdown", "-")
    assert captured.out.startswith("## ") and captured.err == ""
    assert invoke("compare", counted, "--html", "-").out.startswith("<!DOCTYPE html>")
    assert not Path("-").exists()
    for more in (("--html", "-"), ("--json",)):
        said = invoke("compare", counted, "--markdown", "-", *more, exits=2).err
        assert "name files for the others" in said
    assert "--png charts.png" in invoke("compare", counted, "--png", "-", exits=2).err


def test_a_file_that_cannot_be_written_is_said(invoke: Invoke, tmp_path: Path, counted: str) -> None:
    """One line with the path and the reason."""
    said = invoke("compare", counted, "--markdown", str(tmp_path / "none" / "a.md"), exits=2).err
    assert "a.md: No such file or directory" in said


def test_a_folder_named_as_the_job_stands_for_the_job(
    jobs: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    """`windtunnel download` leaves one; it is no counters file."""
    monkeypatch.chdir(tmp_path)
    Path("job-7").mkdir()
    assert "No training job 'job-7'" in invoke("compare", "job-7", exits=1).err


def test_any_job_is_priced_at_any_day(invoke: Invoke, counted: str) -> None:
    """One day's prices in place of all; the note names the day; a day before all prices is refused."""
    size = ("--full-scale-samples", "1000000", "--json")
    data = json.loads(invoke("compare", counted, "--prices-on", "2023-01-01", *size).out)
    costs = {item["instance_type"]: item["costs"] for item in data["estimates"]}
    assert [cost["on"] for cost in costs["ml.p4d.24xlarge"]] == ["2023-01-01"]
    assert costs["ml.p4d.24xlarge"][0]["price"]["usd_per_hour"] == 37.69
    assert "2023-01-01" in data["price_notes"][0]
    said = invoke("compare", counted, "--prices-on", "2019-01-01", *size, exits=2).err
    assert "the first in the book is of 2022-10-10" in said


def test_a_build_fails_on_a_cost(rehearsal: Callable[[Any], None], invoke: Invoke, counters: Any) -> None:
    """That of the instance asked for. A cost that nobody knows is not below a limit either."""
    invoke("run", "src/train.py", "--job-name", "j")
    report = ("report", "j", "--full-scale-samples", "3.6M", "--evaluation-samples", "0", "--max-cost")
    assert "the job left no counters" in invoke(*report, "50", exits=1).err
    rehearsal(counters())
    asked = json.loads(invoke(*report, "1000", "--json").out)["answer"]["instances"][0]
    assert asked["priced_as"] == "ml.trn1.32xlarge"
    for limit, exits in ((asked["usd"] * 1.01, 0), (asked["usd"] * 0.99, 1)):
        said = invoke(*report, str(limit), exits=exits)
        assert ("is modelled to cost $" in said.err) == bool(exits)
        assert "THE ANSWER" in said.out
    rehearsal(counters(train={**counters()["train"], "trace_seconds": 1.0}))
    assert "is not known" in invoke(*report, "1M", exits=1).err
    assert "--max-cost must be above 0 dollars, not -5" in invoke(*report, "-5", exits=2).err
