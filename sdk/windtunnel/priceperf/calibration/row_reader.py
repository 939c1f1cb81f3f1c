"""Read a row of a published table into the training that it describes. Columns as in `published_fitted.csv`.

Required are an instance type, a model (an architecture's name, or its dimensions), a
microbatch and a sequence length. Other missing values are assumed as in the scripts of published
tables, and named in the row's notes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..errors import InvalidInput, PricePerfError
from ..instances import InstanceType, instance_type
from ..model.architectures import ARCHITECTURES, Architecture, architecture, name_key
from ..model.config_json import from_config
from ..model.hub_models import hub_config
from ..model.lora import Lora, lora_of
from ..model.memory_need import needed_recompute, scores_fit, usual_attention
from ..model.plain_script import is_plain
from ..model.training_settings import DTYPE_BYTES, MASKED_PART, Attention, Training, ZeroStage
from .cells import UNKNOWN, integer, number, says
from .columns import named_cells
from .neuron_software import by_nemo

WIDENING = ("recompute", "attention", "network")
"""Columns that widen the interval if their value is assumed."""
_CLUSTER_GBPS = 1600
"""Network of one node, the same in all published clusters of A100s in the calibration."""
_FASTEST_GBPS = 100_000
"""Upper limit, above the network of any node."""
_DIMENSIONS = ("layers", "hidden_size", "attention_heads", "ffn_hidden_size", "kv_hidden_size", "vocabulary")
_DTYPES = {"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float": "fp32"}


@dataclass(frozen=True)
class PublishedRow:
    """One published throughput. Batches in sequences, throughput in sequences per second over all nodes.

    ``published``: None if only a prediction is wanted. ``published_range``: lowest and highest of several
    software versions, if published. ``network_gbps``: of one node, if it is not that of the instance type.
    ``neuron_version``: None: not stated, or a median over several. ``stack``: the training software, which all rows
    of one source share. ``lacks``: the columns of `WIDENING` that had to be assumed.
    """

    config: str
    architecture: str
    instance_type: str
    nodes: int
    training: Training
    published: float | None
    published_range: tuple[float, float] | None
    source: str
    network_gbps: float | None = None
    neuron_version: str | None = None
    stack: str = ""
    lacks: tuple[str, ...] = ()

    @property
    def instance(self) -> InstanceType:
        """The instance type, with the network that the row ran on."""
        return _on_network(self.instance_type, self.network_gbps)

    @property
    def calibration(self) -> str:
        """Key of the calibration that models the row; empty: there is none."""
        return self.instance.calibration or ""

    @property
    def family(self) -> str:
        """The family of the model, as leave-one-family-out groups rows."""
        return self.training.architecture.family

    @property
    def step_s(self) -> float:
        """Seconds of one optimizer step at the published throughput. Raises ValueError if nothing was published."""
        if self.published is None:
            raise ValueError(f"{self.config}: nothing was published")
        return self.training.global_batch / self.published


@dataclass(frozen=True)
class ReadRow:
    """One line of a table: the row read from it, or the reason why it cannot be read.

    ``row`` None: ``reason`` says why. ``notes``: a sentence for each assumption.
    """

    config: str
    instance_type: str
    published: float | None
    row: PublishedRow | None
    reason: str | None = None
    notes: tuple[str, ...] = ()


def read_rows(table: Sequence[Mapping[Any, Any]]) -> tuple[ReadRow, ...]:
    """Read every row of a table, in order; a row that cannot be read has a reason instead.

    Cells beyond the header's columns are a list under the key None, as with `csv.DictReader`.
    """
    return tuple(_read(named_cells(raw), place, raw.get(None)) for place, raw in enumerate(table, start=1))


def _read(cells: Mapping[str, str], place: int, beyond: Sequence[str] | None) -> ReadRow:
    config = cells.get("config") or cells.get("architecture") or f"row {place}"
    name = cells.get("instance_type", "")
    published: float | None = None
    try:
        if any(cell.strip() for cell in beyond or ()):
            raise InvalidInput(
                f"the row has {len(beyond or ())} cells more than the header: quote a cell that holds the separator"
            )
        published = number(cells, "sequences_per_second")
        if published is not None and not published > 0:
            raise InvalidInput(f"sequences_per_second must be above 0, not {published:g}")
        row, notes = _published_row(cells, config, published)
    except PricePerfError as error:
        return ReadRow(config, name, published, None, str(error))
    return ReadRow(config, row.instance_type, published, row, notes=notes)


def _published_row(
    cells: Mapping[str, str], config: str, published: float | None
) -> tuple[PublishedRow, tuple[str, ...]]:
    notes: list[str] = []
    instance = _instance(cells)
    model, weights, name = _architecture(cells, notes)
    copy = integer(cells, "tensor_parallel", 1) * integer(cells, "pipeline_parallel", 1)
    nodes, data = _split(cells, instance, copy, notes)
    training = _training(cells, config, instance, model, weights, data)
    training = _with_attention(training, cells, config, instance, notes)
    training = _with_recompute(training, cells, instance, notes)
    if training.workers > nodes * instance.core_count:
        raise InvalidInput(
            f"tensor x pipeline x data parallel = {training.workers} workers, but {nodes} x {instance.name} "
            f"have {nodes * instance.core_count} {instance.core_name}s"
        )
    network = _network(cells, instance, nodes, notes)
    row = PublishedRow(
        config,
        name,
        instance.name,
        nodes,
        training,
        published,
        _published_range(cells, published, notes),
        cells.get("source", ""),
        network,
        _version(cells),
        cells.get("stack", ""),
        tuple(name for name in WIDENING if any(note.startswith(name) for note in notes)),
    )
    return row, tuple(notes)


def _published_range(
    cells: Mapping[str, str], published: float | None, notes: list[str]
) -> tuple[float, float] | None:
    low, high = number(cells, "published_min"), number(cells, "published_max")
    if low is None and high is None:
        return None
    # Rounding may put the figure outside the range, by a percent at most.
    if low and high and 0 < low <= high and 0.99 * low <= (published or low) <= 1.01 * high:
        return low, high
    notes.append("published_min and published_max are no range that holds the published figure: not used")
    return None


def _training(
    cells: Mapping[str, str],
    config: str,
    instance: InstanceType,
    model: Architecture,
    weights: float,
    data: int,
) -> Training:
    """The training of a row, without attention and recomputation. ``data``: data-parallel copies."""
    microbatch = integer(cells, "microbatch", None)
    storage = _dtype(cells, "storage_dtype", "bf16")
    gpu = not instance.is_neuron
    plain = gpu and is_plain(cells.get("stack"))
    # In tables of trn1 FP32 means storage: AWS's rows kept their speed, 70 % of fp32's peak, with Neuron 2.27 and 2.28.
    matmul = _dtype(cells, "matmul_dtype", storage if gpu else "bf16")
    gradient_bytes = min(DTYPE_BYTES[storage], DTYPE_BYTES[matmul] if gpu else DTYPE_BYTES[storage])
    return Training(
        architecture=model,
        parameters=number(cells, "parameters") or weights,
        microbatch=microbatch,
        global_batch=integer(cells, "global_batch", microbatch * data),
        sequence_length=integer(cells, "sequence_length", None),
        data_parallel=data,
        tensor_parallel=integer(cells, "tensor_parallel", 1),
        pipeline_parallel=integer(cells, "pipeline_parallel", 1),
        storage_dtype=storage,
        matmul_dtype=matmul,
        gradient_bytes=integer(cells, "gradient_allreduce_bytes_per_parameter", gradient_bytes),
        zero=_zero(cells, config),
        mixed_precision=gpu and DTYPE_BYTES[matmul] < DTYPE_BYTES[storage],
        interleaved=integer(cells, "pipeline_interleaving", 1),
        head_part=MASKED_PART if gpu and model.is_masked and not plain else 1.0,
        plain=plain,
        lora=_lora(cells, model),
    )


def _lora(cells: Mapping[str, str], model: Architecture) -> Lora | None:
    given, text = (cells.get(column, "").lower() for column in ("lora_rank", "lora_targets"))
    if given in ("none", "no", "false"):
        return None  # all weights are trained, even if the row names targets
    rank = None if given in UNKNOWN else integer(cells, "lora_rank", None, least=0)
    if rank == 0:
        return None
    text = "all-linear" if text in ("all_linear", "all linear", "all") else text
    targets: Any = None if text in UNKNOWN else text  # checked by Lora, whose error lists the valid ones
    return lora_of(rank, targets, model)


def _split(cells: Mapping[str, str], instance: InstanceType, copy: int, notes: list[str]) -> tuple[int, int]:
    """The number of nodes, and of data-parallel copies of ``copy`` workers each."""
    nodes, data = integer(cells, "nodes", 0), integer(cells, "data_parallel", 0)
    workers = integer(cells, "accelerators", 0)
    if not nodes:
        nodes = math.ceil((workers or copy * max(1, data)) / instance.core_count)
        notes.append(f"nodes not given: taken as {nodes}")
    every = nodes * instance.core_count
    if workers == nodes * int(instance.accelerators.value) != every:
        notes.append(
            f"accelerators {workers} are taken as the chips of {nodes} x {instance.name}, at work with all cores"
        )
        workers = every
    if not data:
        data = max(1, (workers or every) // copy)
        notes.append(f"data_parallel not given: taken as {data}")
    elif workers and workers != copy * data:
        notes.append(
            f"accelerators {workers} are not tensor x pipeline x data parallel = {copy * data}, which is taken"
        )
    return nodes, data


def _network(cells: Mapping[str, str], instance: InstanceType, nodes: int, notes: list[str]) -> float | None:
    network = number(cells, "network_gbps") or None
    if network is not None and not 0 < network <= _FASTEST_GBPS:
        raise InvalidInput(
            f"network_gbps must be above 0 and at most {_FASTEST_GBPS:,}, as 400 is, not {cells['network_gbps']}"
        )
    if network is None and not instance.is_neuron and nodes > 1 and instance.network.value < _CLUSTER_GBPS:
        network = _CLUSTER_GBPS
        notes.append(
            f"network_gbps not given: taken as {network:,}, as all published clusters of A100s have it "
            f"({instance.name} has {instance.network.value:g})"
        )
    return network


@cache
def _on_network(name: str, gbps: float | None) -> InstanceType:
    return instance_type(name).with_network(gbps)


def _instance(cells: Mapping[str, str]) -> InstanceType:
    given = cells.get("instance_type", "")
    if not given:
        raise InvalidInput("instance_type is missing")
    return instance_type(given.split("/")[0].strip())  # "trn1.32xlarge/trn1n.32xlarge": the first


def _architecture(cells: Mapping[str, str], notes: list[str]) -> tuple[Architecture, float, str]:
    """The model of a row, its number of weights, and its name."""
    name = cells.get("architecture", "")
    known = architecture(name)
    if known is not None:
        differ = [column for column in _DIMENSIONS if not says(cells, column, getattr(known, column))]
        if differ:
            notes.append(f"{', '.join(differ)} of the row are not used: {name} is known")
        return known, known.parameters, name
    if not cells.get("layers"):
        if (config := hub_config(name)) is not None:
            return *from_config(config), name
        if (within := _named_in(name)) is not None:
            notes.append(f"architecture {name!r} is taken as {within}")
            return ARCHITECTURES[within], ARCHITECTURES[within].parameters, within
    needed = ("layers", "hidden_size", "attention_heads")
    missing = [column for column in needed if not cells.get(column)]
    if missing:
        what = f"architecture {name!r} is not known" if name else "architecture is missing"
        raise InvalidInput(
            f"{what}, and the row does not give its {', '.join(missing)}. "
            f"Known: {', '.join(ARCHITECTURES)}; or fill the columns layers, hidden_size, attention_heads, "
            "ffn_hidden_size, kv_hidden_size, vocabulary, family."
        )
    layers, hidden, heads = (integer(cells, column, None) for column in needed)
    family = cells.get("family", "").lower() or ("llama" if "llama" in name.lower() else "decoder")
    dimensions: Any = family  # checked by Architecture, whose error lists the valid ones
    model = Architecture(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        ffn_hidden_size=integer(cells, "ffn_hidden_size", 4 * hidden),
        kv_hidden_size=integer(cells, "kv_hidden_size", hidden),
        vocabulary=integer(cells, "vocabulary", 0, least=0),
        family=dimensions,
    )
    return model, model.parameters, name or "given by its dimensions"


def _named_in(text: str) -> str | None:
    """The known architecture whose name is contained in ``text``, as in "Llama-3.1-8B pre-training"."""
    key = name_key(text)
    found = [name for name in ARCHITECTURES if name_key(name) in key]
    return max(found, key=len, default=None)


def _zero(cells: Mapping[str, str], config: str) -> ZeroStage:
    text = cells.get("zero1", "").lower()
    if "fsdp" in config.lower() or text in ("3", "full", "zero3", "fsdp"):
        return "full"
    if text in ("true", "1", "yes", "1.0", "optimizer", "zero1"):
        return "optimizer"
    if text in ("false", "0", "no", "0.0", "none", *UNKNOWN):
        return "none"
    raise InvalidInput(f"zero1 must be True or False, not {text!r}")


def _with_attention(
    training: Training, cells: Mapping[str, str], config: str, instance: InstanceType, notes: list[str]
) -> Training:
    text = cells.get("attention", "").lower()
    kind: Attention = "eager"
    if text not in UNKNOWN:
        if text not in ("eager", "flash"):
            raise InvalidInput(f"attention must be eager or flash, not {text!r}")
        kind = "flash" if text == "flash" else "eager"
    elif "flash" in config.lower():
        kind = "flash"
    else:
        kind, why = usual_attention(training.architecture, training.matmul_dtype, instance)
        if kind == "eager" and not scores_fit(training, instance):
            kind, why = "flash", "the scores of eager attention would not fit, so flash is taken"
        notes += [f"attention not given: {why}"] if why else []
    return replace(training, attention=kind)


def _with_recompute(
    training: Training, cells: Mapping[str, str], instance: InstanceType, notes: list[str]
) -> Training:
    text = cells.get("recompute", "").lower()
    if text in ("false", "no", "0"):
        text = "none"
    if text in ("true", "yes", "1"):
        text = "full"
    if text in UNKNOWN:
        whole = instance.is_neuron and training.architecture.recomputed_by_nemo
        if whole and by_nemo(cells, _version(cells)):
            text, why = "full", "as NeMo Megatron's scripts of Llama for Neuron have it"
        elif training.tensor_parallel > 1:
            text, why = "selective", "the default of libraries with tensor parallelism"
        else:
            text, why = needed_recompute(training, instance), "by what fits the memory"
        notes.append(f"recompute not given: taken as {text}, {why}")
    recompute: Any = text  # checked by Training, whose error lists the valid ones
    # Sequence parallelism and selective recomputation came with one version of Megatron-LM; most tables are older.
    return replace(training, recompute=recompute, sequence_parallel=text == "selective")


def _version(cells: Mapping[str, str]) -> str | None:
    text = cells.get("neuron_version", "").lower()
    return None if text in UNKNOWN else text


def _dtype(cells: Mapping[str, str], column: str, default: str) -> str:
    text = cells.get(column, "").lower()
    if text in UNKNOWN:
        return default
    text = _DTYPES.get(text, text)
    if text in DTYPE_BYTES:
        return text
    if "autocast" in text or "bf16" in text:  # as the Neuron pages write it: "Autocast:BF16+SR"
        return "bf16"
    raise InvalidInput(f"{column} must be one of {', '.join(DTYPE_BYTES)}, not {text!r}")
