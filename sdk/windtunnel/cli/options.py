"""Options that several commands share: each is added to a parser by one function and read by another."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli.amounts import count, length, number, seconds, whole
from windtunnel.cli.hub import config_of
from windtunnel.cli.parser import Parser
from windtunnel.errors import ConfigurationError, JobNotFinished
from windtunnel.local_paths import is_file, is_folder

if TYPE_CHECKING:
    from windtunnel.job.training_job import TrainingJob
    from windtunnel.priceperf import BatchRule, FullScale
    from windtunnel.reports.comparison.subject import Subject
    from windtunnel.session.session import Session
    from windtunnel.user_calibration import CalibrationStore


class Listed(argparse.Action):
    """Names separated by blanks or commas (``--instances trn1 p4d``, ``trn1,p4d``), in lower case, as AWS has them."""

    def __call__(
        self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: str | None = None
    ) -> None:
        """Store the names of all words."""
        names = [name for text in values for name in self.names(text)]
        if not names:
            raise argparse.ArgumentError(self, f"expected a name, not {values[0]!r}")
        setattr(namespace, self.dest, names)

    @staticmethod
    def names(text: str) -> list[str]:
        """The names in one word of the command line."""
        return text.lower().replace(",", " ").split()


_INSTANCE = re.compile(r"(ml\.)?[a-z]+\d+[a-z]*(\.\w+)?(=.*)?", re.IGNORECASE)


def _subject_first(words: Sequence[str]) -> list[str]:
    """Turn ``--instances trn1 p4d JOB`` into ``JOB --instances trn1 p4d``: argparse would take JOB for an instance."""
    found = list(words)
    described = any(word.partition("=")[0] == "--architecture" for word in found)
    if "--instances" not in found or not found[0].startswith("-") or described:
        return found
    first = last = found.index("--instances") + 1
    while last < len(found) and not found[last].startswith("-"):
        last += 1
    names = [name for name in found[first:last] if not all(map(_INSTANCE.fullmatch, Listed.names(name)))]
    if len(names) != 1 or last == first + 1:
        return found
    found.remove(names[0])
    return [*names, *found]


def add_instances(parser: Parser, text: str, metavar: str = "TYPE", group: Any = None) -> None:
    """Add ``--instances``, which takes several types. ``text``: its help in this command, maybe in a ``group``."""
    parser.arrange = _subject_first
    (group or parser).add_argument("--instances", nargs="+", action=Listed, metavar=metavar, help=text)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add ``--aws``: use real SageMaker instead of the local backend."""
    parser.add_argument("--aws", action="store_true", help="on AWS, with your usual credentials")


def session_of(arguments: argparse.Namespace) -> Session:
    """The session that a command uses: AWS with ``--aws``, else this machine's."""
    from windtunnel.session.aws import AwsSession
    from windtunnel.session.resolve import shared_local_session

    return AwsSession() if arguments.aws else shared_local_session()


def job_of(arguments: argparse.Namespace) -> TrainingJob:
    """The training job whose name is the argument ``name``.

    Raises:
        JobNotFound: there is no such job.
    """
    from windtunnel.job.training_job import TrainingJob

    return TrainingJob.attach(arguments.name, session_of(arguments))


def add_rehearsal(parser: argparse.ArgumentParser) -> None:
    """Add ``--rehearsal``: counters or a local job to predict a job on AWS from."""
    parser.add_argument(
        "--rehearsal",
        metavar="COUNTERS.json",
        help="for a job on AWS: the counters (or the local job) from which to predict it",
    )


def rehearsal_of(given: str) -> str | TrainingJob:
    """The file of that name, else the local job. Folders are ignored: `windtunnel download` names one like the job."""
    path = Path(given)
    if path.suffix == ".json" or (path.exists() and not path.is_dir()):
        return given
    from windtunnel.job.training_job import TrainingJob

    return TrainingJob.attach(given)


def add_user_calibration(parser: argparse.ArgumentParser) -> None:
    """Add ``--no-user-calibration``."""
    parser.add_argument(
        "--no-user-calibration",
        action="store_true",
        help="do not use what windtunnel calibrate has stored",
    )


def user_calibration_of(args: argparse.Namespace) -> CalibrationStore | None:
    """The store of `windtunnel calibrate`; None with ``--no-user-calibration``."""
    from windtunnel.user_calibration import STORED

    return None if args.no_user_calibration else STORED


def add_batch(parser: argparse.ArgumentParser) -> None:
    """Add ``--batch`` and ``--batch-per-device``, which choose the batch on each instance."""
    batch = parser.add_mutually_exclusive_group()
    batch.add_argument(
        "--batch",
        metavar="N|RULE",
        help=(
            "the global batch on each instance, or a rule: rehearsed (default: NeuronCores keep the "
            "job's samples, GPUs share its global batch), global (all instances have the job's global "
            "batch), per-device (each worker has as many samples as a core had)"
        ),
    )
    batch.add_argument("--batch-per-device", type=count, metavar="N", help="samples of a step on each worker")


def batch_of(args: argparse.Namespace) -> BatchRule:
    """The batch rule of ``--batch`` or ``--batch-per-device``; without both, that of the rehearsal.

    Raises:
        InvalidInput: ``--batch`` is neither a rule nor a number.
    """
    from windtunnel.priceperf import PerDevice
    from windtunnel.priceperf.workload.cluster import checked_rule

    if args.batch_per_device is not None:
        return PerDevice(args.batch_per_device)
    if args.batch is None:
        return "rehearsed"
    try:
        return checked_rule(whole(args.batch))
    except argparse.ArgumentTypeError:
        return checked_rule(args.batch.replace("-", "_"))


def architecture_of(text: str) -> str | dict[str, Any]:
    """A known name, or the content of a Hugging Face model's config.json: the file, the folder that has it, or the
    model's name on the hub.

    Raises:
        InvalidInput: the file cannot be read or fetched, or the name shows a model that cannot be described.
    """
    from windtunnel.priceperf import InvalidInput
    from windtunnel.priceperf.model.architectures import architecture
    from windtunnel.priceperf.model.config_json import must_be_describable
    from windtunnel.priceperf.model.hub_models import hub_config

    path = Path(text)
    if not text or architecture(text) is not None:
        return text
    # A folder of results may have the name of a known model.
    if is_file(path / "config.json") or (is_folder(path) and hub_config(text) is None):
        path, name = path / "config.json", path.resolve().name
    elif path.suffix == ".json":
        name = path.resolve().parent.name
    elif text.count("/") == 1 and hub_config(text) is None:
        try:
            path, name = config_of(text), text
        except InvalidInput:
            must_be_describable(text)
            raise
    else:
        return text  # a model that is known without the hub, or an unknown one, which is refused later
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"cannot read the model's configuration {path}: {error}") from None
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} is not a model's configuration: it has no JSON object")
    return {**config, "_name_or_path": name}


def add_lora(parser: argparse._ActionsContainer) -> None:
    """Add ``--lora-rank`` and ``--lora-targets``: train adapters instead of all weights."""
    parser.add_argument(
        "--lora-rank",
        type=count,
        metavar="R",
        help="train adapters (LoRA) of that rank; the weights are frozen",
    )
    parser.add_argument(
        "--lora-targets",
        choices=("attention", "all-linear"),
        help="which layers have adapters (default: all linear layers)",
    )


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add the options for the size of the real job."""
    size = parser.add_argument_group(
        "the real job behind the rehearsed sample",
        "What the rehearsal found stays, if it is not given here; else 1 epoch, nothing evaluated.",
    )
    size.add_argument(
        "--full-scale-samples", "--samples", type=whole, metavar="N", help="training samples of an epoch"
    )
    size.add_argument("--epochs", type=whole, metavar="E", help="epochs")
    size.add_argument(
        "--evaluation-samples", type=whole, metavar="N", help="samples evaluated after each epoch"
    )
    size.add_argument(
        "--evaluation-not-split", action="store_true", help="each worker evaluates all of them (no sampler)"
    )
    size.add_argument(
        "--dataset-gib", type=number, metavar="GIB", help="size of the data that each instance downloads"
    )
    size.add_argument(
        "--preparation-seconds",
        type=seconds,
        metavar="S",
        help="time without training: tokenising, unpacking, checkpoints",
    )
    size.add_argument(
        "--loader-samples-per-second",
        type=number,
        metavar="R",
        help=(
            "samples that one process of the data loader prepares a second: steps wait if all vCPUs "
            "together prepare too few"
        ),
    )
    size.add_argument(
        "--tokenised-samples",
        type=whole,
        metavar="N",
        help="text samples the script tokenises before it trains",
    )
    size.add_argument("--compile-cached", action="store_true", help="all graphs come from a compile cache")
    size.add_argument(
        "--sequence-length",
        type=length,
        metavar="N",
        help=(
            "tokens of a sample (default for a described model: its family's). For a rehearsed job it "
            "is only compared with the calibrated range: to change the length, rehearse with it"
        ),
    )


def full_scale_of(args: argparse.Namespace, rehearsal: Subject | None = None) -> FullScale | None:
    """The size of the real job that the options give; None without any. What they leave out stays as the rehearsal
    found it.

    Raises:
        ConfigurationError: the number of samples is missing, or a value is out of its range.
        JobNotFinished: it is missing, and the job has no counters (yet).
    """
    from windtunnel.priceperf import InvalidInput, PricePerfError
    from windtunnel.priceperf.workload.rehearsed import stating
    from windtunnel.reports.comparison.subject import read

    given = {
        "train_samples": args.full_scale_samples,
        "epochs": args.epochs,
        "evaluation_samples": args.evaluation_samples,
        "evaluation_split": False if args.evaluation_not_split else None,
        "dataset_gib": args.dataset_gib,
        "preparation_s": args.preparation_seconds,
        "loader_samples_per_s": args.loader_samples_per_second,
        "tokenised_samples": args.tokenised_samples,
        "compile_cached": args.compile_cached or None,
        "sequence_length": args.sequence_length,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return None
    try:
        job = None if rehearsal is None else read(rehearsal)[1].rehearsed
    except (PricePerfError, JobNotFinished):
        if "train_samples" not in given:
            raise
        job = None  # the report says why nothing is modelled
    try:
        found = stating(job, given)
    except InvalidInput as error:
        raise ConfigurationError(str(error)) from error
    if found is None:
        raise ConfigurationError(
            "sizes of the real job also need --full-scale-samples N (samples of one epoch)"
        )
    return found


def given_of(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that were given on the command line. 0 counts as given, although it equals False."""
    return [name for name in names if (value := getattr(args, name)) is not None and value is not False]


def day(text: str) -> date:
    """Read a day, as a ``type`` of argparse.

    Raises:
        ArgumentTypeError: the text is no day in the form YYYY-MM-DD.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2023-01-31") from None
