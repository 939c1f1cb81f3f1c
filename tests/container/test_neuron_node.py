"""What a cluster's node has besides the simulator: its virtual environment, its pip, small data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from test_requirements import wheel

SOFTWARE = Path(__file__).parents[2] / "containers" / "cluster" / "software"
sys.path.insert(0, str(SOFTWARE))

from neuron_node import small_data, virtual_environment  # noqa: E402 - from where it lies

OWN = "windtunnel-some-requirement"


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """One on top of the image's."""
    place = tmp_path_factory.mktemp("home") / virtual_environment.NAME
    virtual_environment.make(place, Path(sys.prefix))
    return place


def run(environment: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command after `source activate`."""
    return subprocess.run(
        ["bash", "-c", 'source "$0/bin/activate"; exec "$@"', str(environment), *command],
        env={**os.environ, "PYTHONPATH": str(SOFTWARE), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_commands_are_the_environment_s_own_and_see_the_image_s_packages(environment):
    """What torchrun starts must find what the user has installed: it runs in the user's Python."""
    for name in ("torchrun", "neuron_parallel_compile", "accelerate"):
        assert run(environment, "which", name).stdout.strip() == str(environment / "bin" / name)
        first = (environment / "bin" / name).read_text().splitlines()[0]
        assert first == f"#!{environment}/bin/python"
    asked = run(environment, "python3", "-c", "import sys, torch_neuronx, transformers; print(sys.prefix)")
    assert asked.stdout.strip() == str(environment), asked.stderr
    cores = run(
        environment,
        "neuron-ls",
        "-j",
        WINDTUNNEL_INSTANCE_TYPE="ml.trn1.32xlarge",
        WINDTUNNEL_LOCAL_CORES="2",
    )
    assert [device["nc_count"] for device in json.loads(cores.stdout)] == [2]


def test_making_it_again_keeps_what_was_installed_unless_it_was_half_made(environment):
    """The head node makes it at each of its starts."""
    mark = environment / "kept"
    mark.touch()
    virtual_environment.make(environment, Path(sys.prefix))
    assert mark.exists()
    (environment / ".made-by-windtunnel").unlink()
    virtual_environment.make(environment, Path(sys.prefix))
    assert not mark.exists()
    assert run(environment, "pip", "--version").returncode == 0


def test_requirements_are_installed_into_it_and_the_image_s_versions_stand_in(environment, tmp_path):
    """`python3 -m pip install -r requirements.txt` of AWS's guide, where no index has its pins."""
    wheel(tmp_path, OWN, "1")
    file = tmp_path / "requirements.txt"
    file.write_text(f"transformers==4.44.0\n{OWN}\n")
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    done = run(environment, "python3", "-m", "pip", "install", "-r", str(file), **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"transformers {metadata.version('transformers')}, which is installed, stands in" in done.stdout
    assert list(environment.glob(f"lib/*/site-packages/{OWN.replace('-', '_')}"))
    assert not list(metadata.distributions(name=OWN))
    assert file.read_text() == f"transformers==4.44.0\n{OWN}\n"
    assert run(environment, "pip3", "uninstall", "--yes", OWN).returncode == 0


def test_what_nothing_stands_in_for_fails(environment, tmp_path):
    """With pip's exit code."""
    (tmp_path / "requirements.txt").write_text("windtunnel-nowhere\n")
    done = run(environment, "pip", "install", "-r", str(tmp_path / "requirements.txt"), PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert "No matching distribution" in done.stderr


def test_a_shard_has_the_columns_of_wikicorpus():
    """As AWS's script reads them: masked words are put back by position, none of them at position 0."""
    columns = small_data.shard(64, 128)
    shapes = {name: column.shape for name, column in columns.items()}
    assert shapes == {
        "input_ids": (64, 128),
        "input_mask": (64, 128),
        "segment_ids": (64, 128),
        "masked_lm_positions": (64, 20),
        "masked_lm_ids": (64, 20),
        "next_sentence_labels": (64,),
    }
    assert columns["masked_lm_positions"].min() > 0
    assert 5 <= columns["masked_lm_ids"].min() <= columns["masked_lm_ids"].max() < small_data.VOCABULARY
    assert set(columns["next_sentence_labels"]) == {0, 1}


LOADED = """
import pathlib, sys
from neuron_node import small_data
small_data.bert(pathlib.Path("cache"))
small_data.gpt2(pathlib.Path(), length=16)
small_data.wikitext(pathlib.Path(), lines=200)
from datasets import load_dataset
from transformers import AutoTokenizer, BertForPreTraining
config = BertForPreTraining.from_pretrained("bert-large-uncased", use_safetensors=False).config
data, tokenizer = load_dataset("wikitext", "wikitext-103-raw-v1"), AutoTokenizer.from_pretrained("gpt2")
print(config.num_hidden_layers, config.vocab_size, {name: len(split) for name, split in data.items()})
print(tokenizer.model_max_length, 0 in tokenizer(data["train"][0]["text"])["input_ids"])
"""


def test_small_models_and_data_are_found_by_the_names_that_the_scripts_ask_for(tmp_path):
    """Without a network: a BERT in the hub's cache, GPT-2's tokenizer and wikitext in the script's folder."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(SOFTWARE),
            "HF_HOME": str(tmp_path / "cache"),
            "HF_HUB_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2 1024 {'train': 200, 'validation': 2, 'test': 2}", "16 False"]
