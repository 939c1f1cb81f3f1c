"""Small data sets and models for rehearsals, written where AWS's scripts look for the real ones.

    python3 -m neuron_node.small_data bert       shards below ~/examples_datasets, bert-large-uncased in the hub's cache
    python3 -m neuron_node.small_data gpt2 DIR   folders `gpt2` and `wikitext` in the folder that the script runs in

The data is made up, but can be learnt: token numbers count up in steps. Schema of the shards: NVIDIA
DeepLearningExamples, BERT for PyTorch, `create_pretraining_data.py`, as AWS's scripts read it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIKICORPUS = "examples_datasets/bert_pretrain_wikicorpus_tokenized_hdf5_seqlen{}"
VOCABULARY = 1024
_REVISION = "0" * 40
"""A commit hash that no repository of the hub has."""
_CLS, _SEP, _MASK, _FIRST_WORD = 1, 2, 3, 5
_PREDICTIONS = {128: 20, 512: 80}
"""Most masked words in a sequence, by its length: the scripts' --max_pred_len."""


def wikicorpus(folder: Path, shards: int, examples: int, *, length: int) -> None:
    """Write HDF5 shards of masked sentence pairs: ``examples`` each, of ``length`` tokens."""
    import h5py  # type: ignore[import-not-found]

    folder.mkdir(parents=True, exist_ok=True)
    for number in range(shards):
        with h5py.File(folder / f"wikicorpus_en_training_{number}.hdf5", "w") as file:
            for name, column in shard(examples, length, seed=number).items():
                file.create_dataset(name, data=column, compression="gzip")


def shard(examples: int, length: int, *, seed: int = 0) -> dict[str, Any]:
    """The columns of one shard, as NumPy arrays with a row for each example.

    Token numbers count up in each half of a sequence. The second half continues the first, or starts anew: that is
    the label of next-sentence prediction. Position 0 is never masked: it would end the list of masked positions.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    words, most = VOCABULARY - _FIRST_WORD, _PREDICTIONS.get(length, max(1, length * 3 // 20))
    first, step, jump = (generator.integers(low, words, size=(examples, 1)) for low in (0, 1, 1))
    anew = generator.integers(0, 2, size=(examples, 1))
    counted = np.arange(length)[None, :]
    second = counted >= length // 2
    ids = _FIRST_WORD + (first + step * counted + jump * (second & (anew == 1))) % words
    marks = {0: _CLS, length // 2 - 1: _SEP, length - 1: _SEP}
    for place, mark in marks.items():
        ids[:, place] = mark
    may_mask = np.setdiff1d(np.arange(length), list(marks))
    positions = np.sort([generator.choice(may_mask, most, replace=False) for _ in range(examples)], axis=1)
    masked = np.take_along_axis(ids, positions, axis=1)
    np.put_along_axis(ids, positions, _MASK, axis=1)
    return {
        "input_ids": ids.astype("i4"),
        "input_mask": np.ones_like(ids, dtype="i1"),
        "segment_ids": np.broadcast_to(second, ids.shape).astype("i1"),
        "masked_lm_positions": positions.astype("i4"),
        "masked_lm_ids": masked.astype("i4"),
        "next_sentence_labels": anew[:, 0].astype("i1"),
    }


def bert(cache: Path, *, layers: int = 2, hidden: int = 64) -> Path:
    """Write a BERT with random weights where the hub's cache would have bert-large-uncased; returns its folder.

    ``cache``: HF_HOME. A script loads the model from there if the hub is unreachable, or with HF_HUB_OFFLINE=1.
    """
    import torch
    from transformers import BertConfig, BertForPreTraining  # type: ignore[import-not-found]

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 32),
        intermediate_size=4 * hidden,
    )
    repository = cache / "hub" / "models--bert-large-uncased"
    snapshot = repository / "snapshots" / _REVISION
    # The scripts expect PyTorch's own format.
    BertForPreTraining(config).save_pretrained(snapshot, safe_serialization=False)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(_REVISION)
    return snapshot


def gpt2(folder: Path, *, length: int) -> None:
    """Write a folder `gpt2`: a tokenizer of 60 words, whose ``length`` becomes the length of a sample."""
    from tokenizers import Tokenizer, models, pre_tokenizers  # type: ignore[import-not-found]
    from transformers import GPT2Config, PreTrainedTokenizerFast

    words = ["<|endoftext|>", *(f"w{number}" for number in range(59))]
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(words)}, unk_token=words[0])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=words[0], eos_token=words[0], model_max_length=length
    ).save_pretrained(folder / "gpt2")
    GPT2Config(n_layer=1).save_pretrained(folder / "gpt2")


def wikitext(folder: Path, *, lines: int) -> None:
    """Write a folder `wikitext` that `datasets` loads as the data set of that name, with lines of 40 made-up words."""
    generator = random.Random(0)  # noqa: S311 - no secret
    name = "wikitext-103-raw-v1"
    splits = {"train": lines, "validation": max(1, lines // 100), "test": max(1, lines // 100)}
    for split, count in splits.items():
        path = folder / "wikitext" / name / f"{split}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for _ in range(count):
                first, step = generator.randrange(59), generator.randrange(1, 59)
                file.write(" ".join(f"w{(first + step * at) % 59}" for at in range(40)) + "\n")
    files = "".join(f"  - split: {split}\n    path: {name}/{split}.txt\n" for split in splits)
    (folder / "wikitext" / "README.md").write_text(
        f"---\nconfigs:\n- config_name: {name}\n  data_files:\n{files}---\nMade up, to rehearse with.\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Write the data and the model that one of the scripts needs, and print where they are."""
    parser = argparse.ArgumentParser(
        prog="python3 -m neuron_node.small_data",
        description="Write small made-up data and models where AWS's scripts look for the real ones.",
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    for_bert = kinds.add_parser("bert", help="for dp_bert_hf_pretrain")
    for_bert.add_argument("--home", type=Path, default=Path.home())
    for_bert.add_argument("--shards", type=int, default=16, help="at least one a worker (16)")
    for_bert.add_argument("--examples", type=int, default=1024, help="of a shard (1024)")
    for_bert.add_argument("--length", type=int, default=128, help="tokens of an example (128)")
    for_bert.add_argument("--layers", type=int, default=2)
    for_bert.add_argument("--hidden", type=int, default=64)
    for_gpt2 = kinds.add_parser("gpt2", help="for zero1_gpt2")
    for_gpt2.add_argument("folder", type=Path, help="where the script runs")
    for_gpt2.add_argument("--lines", type=int, default=12_000)
    for_gpt2.add_argument("--length", type=int, default=32, help="tokens of a sample (32)")
    given = parser.parse_args(argv)
    if given.kind == "bert":
        data = given.home / WIKICORPUS.format(given.length)
        wikicorpus(data, given.shards, given.examples, length=given.length)
        cache = Path(os.environ.get("HF_HOME") or given.home / ".cache" / "huggingface")
        model = bert(cache, layers=given.layers, hidden=given.hidden)
        said = {"data": data, "model": model}
    else:
        gpt2(given.folder, length=given.length)
        wikitext(given.folder, lines=given.lines)
        said = {"data": given.folder / "wikitext", "model": given.folder / "gpt2"}
    print(json.dumps({name: str(path) for name, path in said.items()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
