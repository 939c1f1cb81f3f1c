"""Fine-tunes BERT on product reviews on AWS Trainium, with PyTorch/XLA.

A training script as SageMaker starts it: ``torchrun --nproc_per_node <NeuronCores> train.py
--epochs 1 ...``. Reads ``train.csv`` from the channel ``train`` and ``test.csv`` from ``val``
(columns title, content, label), writes a model that `transformers` loads anywhere to
``SM_MODEL_DIR`` and the history of metrics to ``SM_OUTPUT_DATA_DIR``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

# Set before torch_xla is imported: the Neuron compiler reads its flags when the first graph is compiled.
# AWS's compiler of 2022 multiplied fp32 matrices in bf16 by default; since Neuron 2.27 that takes a flag.
os.environ.setdefault("NEURON_CC_FLAGS", "--model-type=transformer --auto-cast=matmult")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend  # registers the "xla" backend
import torch_xla.runtime as xr
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

SMALL = "small"
"""The model_name of a BERT that is built here, with a tokenizer trained on the reviews. It needs no hub."""

Batch = dict[str, torch.Tensor]


def parse_args() -> argparse.Namespace:
    env = os.environ
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model_name", default="bert-base-uncased", help=f"a model of the hub, or {SMALL!r}")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=8, help="reviews per NeuronCore and step")
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--warmup_share", type=float, default=0.06, help="share of all steps")
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--max_length", type=int, default=128, help="tokens; shorter reviews are padded")
    parser.add_argument("--log_every", type=int, default=25, help="steps between two lines with the loss")
    parser.add_argument("--seed", type=int, default=42)
    small = parser.add_argument_group(f"the model {SMALL!r}")
    small.add_argument("--vocab_size", type=int, default=4000)
    small.add_argument(
        "--embedding_rows", type=int, default=0, help="at least so many, also without words for them"
    )
    small.add_argument("--num_layers", type=int, default=2)
    small.add_argument("--hidden_size", type=int, default=64)
    small.add_argument("--num_heads", type=int, default=4)
    small.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--train", type=Path, default=Path(env.get("SM_CHANNEL_TRAIN", "data/train")))
    parser.add_argument("--val", type=Path, default=Path(env.get("SM_CHANNEL_VAL", "data/val")))
    parser.add_argument("--model_dir", type=Path, default=Path(env.get("SM_MODEL_DIR", "model")))
    parser.add_argument("--output_dir", type=Path, default=Path(env.get("SM_OUTPUT_DATA_DIR", "output")))
    return parser.parse_args()


# --- data -----------------------------------------------------------------


class Reviews(Dataset[Batch]):
    """Tokenised reviews, all padded to the same length: on XLA each new shape compiles a new graph."""

    def __init__(self, columns: Batch) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns["labels"])

    def __getitem__(self, index: int) -> Batch:
        return {name: column[index] for name, column in self.columns.items()}

    def __getitems__(self, indices: list[int]) -> Batch:
        """Fetch a whole batch at once: 3 gathers in all, instead of 3 for each review."""
        return {name: column[indices] for name, column in self.columns.items()}

    def padded(self, multiple: int) -> Reviews:
        """The reviews, filled up to a multiple with rows labelled -1, which the metrics leave out."""
        missing = -len(self) % multiple
        rows = [*range(len(self)), *[0] * missing]
        columns = {name: column[rows] for name, column in self.columns.items()}
        columns["labels"][len(self) :] = -1
        return Reviews(columns)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def train_tokenizer(rows: list[dict[str, str]], vocab_size: int) -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer like that of bert-base-uncased, made of the words of these reviews.

    The most frequent words are tokens; rarer words are split into letters. `WordPieceTrainer` would do better, but
    its order of equally frequent words differs from run to run, so the hosts of a job would number words differently.
    """
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    texts = (normalizer.normalize_str(f"{row['title']} {row['content']}") for row in rows)
    counts = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(text))
    letters = sorted({letter for word in counts for letter in word})
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    tokens = dict.fromkeys(
        [*special.values(), *letters, *(f"##{letter}" for letter in letters), *by_frequency]
    )
    vocabulary = {token: number for number, token in enumerate(list(tokens)[:vocab_size])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special["unk_token"]))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    separators = [(token, tokenizer.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*separators)
    # Without token_type_ids among the names, a program that loads the model would use one segment instead of two.
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **special,
    )


def tokenise(rows: list[dict[str, str]], tokenizer: PreTrainedTokenizerBase) -> Batch:
    """Tokenise title and content as BERT's two segments, cut and padded to one length."""
    columns: Batch = dict(
        tokenizer(
            [row["title"] for row in rows],
            [row["content"] for row in rows],
            truncation=True,
            padding="max_length",
            return_tensors="pt",
        )
    )
    columns["labels"] = torch.tensor([int(row["label"]) for row in rows])
    return columns


# --- model ----------------------------------------------------------------


def hub_reachable(timeout_s: float = 3.0) -> bool:
    """Whether the model hub answers. Makes no request if HF_HUB_OFFLINE is set."""
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in {"1", "true", "yes", "on"}:
        return False
    url = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout_s):  # noqa: S310
            return True
    except OSError:
        return False


def build_small(args: argparse.Namespace, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=max(len(tokenizer), args.embedding_rows),
            num_hidden_layers=args.num_layers,
            hidden_size=args.hidden_size,
            num_attention_heads=args.num_heads,
            intermediate_size=4 * args.hidden_size,
            max_position_embeddings=args.max_length,
            hidden_dropout_prob=args.dropout,
            attention_probs_dropout_prob=args.dropout,
            initializer_range=0.05,  # BERT's 0.02 is for a width of 768
            pad_token_id=tokenizer.pad_token_id,
            num_labels=2,
        )
    )


def choose_model(
    args: argparse.Namespace, rows: list[dict[str, str]]
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model and tokenizer named on the command line; without a hub, a small BERT made here."""
    name = args.model_name
    if name != SMALL and not Path(name).is_dir() and not hub_reachable():
        print(f"model {name!r} needs the model hub, which is not reachable: training a small BERT instead")
        name = SMALL
    if name == SMALL:
        tokenizer = train_tokenizer(rows, args.vocab_size)
        return build_small(args, tokenizer), tokenizer
    tokenizer = AutoTokenizer.from_pretrained(name)
    return AutoModelForSequenceClassification.from_pretrained(name, num_labels=2), tokenizer


def prepare(args: argparse.Namespace, folder: Path) -> None:
    """Write the files that every worker of this host loads: tokenizer, initial weights, tokenised reviews."""
    train_rows, val_rows = read_csv(args.train / "train.csv"), read_csv(args.val / "test.csv")
    model, tokenizer = choose_model(args, train_rows)
    tokenizer.model_max_length = (
        args.max_length
    )  # saved with the tokenizer, so that texts are later cut as in training
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.save(tokenise(train_rows, tokenizer), folder / "train.pt")
    torch.save(tokenise(val_rows, tokenizer), folder / "val.pt")
    print(
        f"model {model.num_parameters() / 1e6:.1f} M parameters, vocabulary {len(tokenizer)}, "
        f"{len(train_rows)} training and {len(val_rows)} validation reviews",
        flush=True,
    )


def prepare_once(
    args: argparse.Namespace,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, Reviews, Reviews]:
    """Prepares on one worker of each host while the others wait, then loads on all of them."""
    torch.manual_seed(args.seed)
    first = xm.is_master_ordinal(local=True)
    folder = Path(tempfile.mkdtemp()) if first else None
    if folder:
        prepare(args, folder)
    folders = xm.rendezvous("prepared", str(folder or "").encode())
    shared = Path(folders[xr.global_ordinal() - xr.local_ordinal()].decode())
    # "eager": attention as its plain formula, which a NeuronCore computes in any case; so its work is counted.
    model = AutoModelForSequenceClassification.from_pretrained(shared, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(shared)
    train, val = (Reviews(torch.load(shared / name)) for name in ("train.pt", "val.pt"))
    xm.rendezvous("loaded")
    if folder:
        shutil.rmtree(folder)
    return model, tokenizer, train, val


# --- training -------------------------------------------------------------


class Optimizer:
    """AdamW with linear warm-up and decay, whose learning rate is computed on the device.

    A rate that is a Python number is a constant of the graph, and each new number is a new graph:
    with a schedule, every step would be compiled. As tensors, step and rate are inputs of the graph.
    """

    def __init__(
        self, model: PreTrainedModel, args: argparse.Namespace, steps: int, device: torch.device
    ) -> None:
        self._peak = args.learning_rate
        self._steps = steps
        self._warmup = max(1, int(steps * args.warmup_share))
        self._step = torch.zeros((), device=device)
        self.rate = torch.zeros((), device=device)
        weights = [p for p in model.parameters() if p.dim() > 1]
        others = [p for p in model.parameters() if p.dim() <= 1]
        groups = [
            {"params": weights, "weight_decay": args.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        self._adamw = torch.optim.AdamW(groups, lr=self.rate, betas=(0.9, 0.98), capturable=True)

    def step(self) -> None:
        """Averages the gradients over all workers, updates the parameters, clears the gradients."""
        self._step += 1
        rising = self._step / self._warmup
        falling = (self._steps - self._step + 1) / (self._steps - self._warmup + 1)
        self.rate.copy_(self._peak * torch.minimum(rising, falling))
        xm.optimizer_step(self._adamw)
        self._adamw.zero_grad(set_to_none=True)


def train_epoch(
    epoch: int, model: PreTrainedModel, loader: pl.MpDeviceLoader, optimizer: Optimizer, log_every: int
) -> None:
    model.train()
    started = time.monotonic()

    def report(step: int, loss: torch.Tensor, rate: torch.Tensor) -> None:
        xm.master_print(
            f"epoch {epoch} step {step}/{len(loader)} train_loss={loss.item():.4f} learning_rate={rate.item():.2e} "
            f"seconds={time.monotonic() - started:.1f}",
            flush=True,
        )

    for step, batch in enumerate(loader, start=1):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        if step % log_every == 0 or step == len(loader):
            # The closure runs after the step's graph. Reading the loss here would split the graph in two.
            xm.add_step_closure(report, args=(step, loss.detach(), optimizer.rate))


def evaluate(model: PreTrainedModel, loader: pl.MpDeviceLoader, device: torch.device) -> dict[str, float]:
    """Accuracy and mean loss over all reviews of all workers."""
    model.eval()
    sums = torch.zeros(3, device=device)  # right answers, reviews, loss
    torch_xla.sync()  # makes sums an input of the graphs; else the first batch would have a graph of its own
    with torch.no_grad():
        for batch in loader:
            labels = batch.pop("labels")
            logits = model(**batch).logits
            counted = labels >= 0
            right = (logits.argmax(dim=-1) == labels) & counted
            loss = torch.nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")
            sums += torch.stack([right.sum().float(), counted.sum().float(), loss])
    right, reviews, loss = xm.mesh_reduce(
        "evaluate", sums, lambda parts: torch.stack(parts).sum(dim=0)
    ).tolist()
    return {"val_accuracy": right / reviews, "val_loss": loss / reviews}


def loader_for(
    reviews: Reviews, args: argparse.Namespace, device: torch.device, *, shuffle: bool
) -> tuple[pl.MpDeviceLoader, DistributedSampler[Batch]]:
    """A loader with batches of one fixed shape, and its sampler, which gives each review to exactly one worker."""
    sampler = DistributedSampler(
        reviews,
        num_replicas=xr.world_size(),
        rank=xr.global_ordinal(),
        shuffle=shuffle,
        seed=args.seed,
        drop_last=True,
    )
    loader = DataLoader(
        reviews, args.batch_size, sampler=sampler, drop_last=True, collate_fn=lambda batch: batch
    )
    return pl.MpDeviceLoader(loader, device), sampler


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, args: argparse.Namespace) -> None:
    """Writes, from one worker, the model as `AutoModelForSequenceClassification.from_pretrained` reads it."""
    args.model_dir.mkdir(parents=True, exist_ok=True)
    xm.save(model.state_dict(), args.model_dir / "pytorch_model.bin", global_master=True)
    if xm.is_master_ordinal(local=False):
        model.config.save_pretrained(args.model_dir)
        tokenizer.save_pretrained(args.model_dir)
    xm.rendezvous("saved")


def main() -> None:
    args = parse_args()
    transformers_logging.disable_progress_bar()  # progress bars need a terminal
    dist.init_process_group("xla")
    device = torch_xla.device()
    model, tokenizer, train, val = prepare_once(args)
    model = model.to(device)
    train_loader, train_sampler = loader_for(train, args, device, shuffle=True)
    val_loader, _ = loader_for(val.padded(args.batch_size * xr.world_size()), args, device, shuffle=False)
    optimizer = Optimizer(model, args, args.epochs * len(train_loader), device)
    xm.master_print(f"{xr.world_size()} workers, {len(train_loader)} steps an epoch", flush=True)

    history = []
    for epoch in range(1, args.epochs + 1):
        train_sampler.set_epoch(epoch)
        started = time.monotonic()
        train_epoch(epoch, model, train_loader, optimizer, args.log_every)
        train_seconds = time.monotonic() - started
        metrics = evaluate(model, val_loader, device) | {"train_seconds": train_seconds}
        history.append({"epoch": epoch, **metrics})
        values = " ".join(f"{name}={value:.4f}" for name, value in metrics.items())
        xm.master_print(f"epoch {epoch} {values}", flush=True)

    save(model, tokenizer, args)
    if xm.is_master_ordinal(local=False):
        args.output_dir.mkdir(parents=True, exist_ok=True)
        (args.output_dir / "history.json").write_text(json.dumps(history, indent=2) + "\n")


if __name__ == "__main__":
    main()
