"""counters.json as dataclasses: the backend writes the file from them, reports and the model read it into them.

docs/reference/counters.md says what each member means. A new member is one line here.

The file is read strictly (`strict_reader`): what the model computes with must be present and valid. Exceptions
stand at the member: one with a default may be missing or null (nothing counted it, or an earlier version did not
know it); one marked `Shown` is left out if it is invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, NamedTuple

from ..errors import InvalidCounters, quoted
from .counted_graphs import Graphs
from .counted_input import Input
from .strict_reader import AtLeastOne, Limits, Plain, Shown, Size, read

SCHEMA = "windtunnel.counters/1"
MOST_INSTANCES = 1_000_000
"""Upper limit, so that figures stay finite. Assumption: no cluster has more."""
SEVERITIES = ("error", "warning", "note")
"""Severities of findings, worst first."""
WRONG_RESULT = ("no_exchange", "same_data", "no_number", "untied_weights", "unequal_weights", "wrong_split")
"""Kinds of findings that make the result wrong, so that lost seconds do not measure them."""


@dataclass(frozen=True, kw_only=True)
class Collectives:
    """All collectives of one kind. ``bytes``: the payload of one rank."""

    count: float
    bytes: float


class CountedProduct(NamedTuple):
    """``batch`` x ``times`` products of (rows x inner) by (inner x columns)."""

    batch: Size
    rows: Size
    inner: Size
    columns: Size
    dtype: str
    times: Size


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """Element-wise work; docs/reference/counters.md explains the fusion model."""

    fused_bytes: float
    unfused_bytes: Shown[float | None] = None
    vector_elements: Shown[float | None] = None
    scalar_elements: Shown[float | None] = None


@dataclass(frozen=True, kw_only=True)
class Elementwise:
    """Element-wise work: ``activations`` grow with the batch, ``state`` does not."""

    activations: Kernels
    state: Kernels | None = None


@dataclass(frozen=True, kw_only=True)
class ScaledDotProductAttention:
    """Attention scores computed by scaled dot product attention: in all calls, and in those with ``is_causal``."""

    scores: float
    causal_scores: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of steps, by class of operation.

    ``convolutions``: the products that are convolutions; earlier versions listed none. ``sdpa``: scaled dot product
    attention, whose products are in ``products`` too.
    """

    products: tuple[CountedProduct, ...] = ()
    convolutions: tuple[CountedProduct, ...] = ()
    product_bytes: Shown[float | None] = None
    elementwise: Elementwise
    gather_bytes: float
    scatter_bytes: float
    input_bytes: Shown[float | None] = None
    output_bytes: Shown[float | None] = None
    sdpa: ScaledDotProductAttention | None = None
    collectives: Shown[Mapping[str, Collectives]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Updates:
    """With gradient accumulation: the steps in which an optimizer stepped, and the sums of their own collectives.

    ``passes``: steps that the script makes for each step of the optimizer, even if the rehearsal ended earlier; None:
    counters of an earlier version. ``least_trace_seconds``: how much longer such a step takes to trace than others.
    """

    steps: AtLeastOne
    passes: AtLeastOne | None = None
    collectives: Mapping[str, Collectives] = field(default_factory=dict)
    least_trace_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """What trn1 computes twice because the script reads values in the middle of steps. It is part of the sums.

    ``fused_bytes``: of the activations.
    """

    flops: float
    fused_bytes: float


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Sums over steps. Work and collectives: of one core. Samples: of all ranks. Seconds: of the rehearsal's machine.

    ``updates``: of gradient accumulation; None if the optimizer steps each time, or the counters do not say.
    """

    steps: AtLeastOne
    samples: int
    samples_per_step_per_core: float
    flops: Mapping[str, float]
    bytes_accessed: float
    collectives: Mapping[str, Collectives]
    seconds: Shown[Size | None] = None
    median_step_seconds: Shown[float | None] = None
    collective_seconds: Shown[float | None] = None
    input_wait_seconds: Shown[float | None] = None
    work: Work | None = None
    trace_seconds: Shown[float | None] = None
    least_trace_seconds: float | None = None
    reference_seconds: float | None = None
    launches: float | None = None
    steps_with_host_reads: float = 0.0
    repeated: Repeated | None = None
    updates: Updates | None = None

    @property
    def passes(self) -> int:
        """Passes of one optimizer step. Without `Updates.passes`, a rehearsal that ended early may show too many."""
        updates = self.updates
        return 1 if updates is None else updates.passes or max(1, round(self.steps / updates.steps))


@dataclass(frozen=True, kw_only=True)
class Split:
    """How several cores share one copy of a model. ``zero1``: the copies shard the optimizer's state (ZeRO-1).

    ``config``: the plain values of the model's config.json, as the transformers library has it; None: there is none.
    ``lora_rank``: rank of the adapters that are trained in place of the weights.
    """

    tensor_parallel: AtLeastOne
    pipeline_parallel: AtLeastOne
    zero1: bool = False
    config: Mapping[str, Plain] | None = None
    lora_rank: AtLeastOne | None = None

    @property
    def cores(self) -> int:
        """Cores that share one copy of the model."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters of one rank, as its optimizers show them. ``count``: those that the rank trains.

    ``model``: those of the whole model, with other ranks' shards and ``frozen`` ones; None: not counted.
    ``cores``: how many cores share one copy of the model, and train on the same batches; ``split`` says how.
    ``sdpa_elsewhere``: the transformers library chose eager attention because of torch_xla; without it, it would
    call scaled dot product attention, with this ``is_causal``.
    """

    count: float
    tensors: float | None = None
    model: float | None = None
    frozen: float | None = None
    cores: AtLeastOne = 1
    split: Split | None = None
    sdpa_elsewhere: bool = False
    is_causal: bool = False
    parameter_bytes: float | None = None
    gradient_bytes: Shown[float | None] = None
    optimizer_bytes: Shown[float | None] = None
    dtypes: Shown[Mapping[str, Mapping[str, float]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """Bytes by use when a core's memory was fullest, and the line of the script at that moment."""

    parameters: Shown[int | None] = None
    gradients: Shown[int | None] = None
    optimizer_state: Shown[int | None] = None
    other: Shown[int | None] = None
    temporaries: Shown[int | None] = None
    total: Shown[int | None] = None
    limit: Shown[int | None] = None
    line: Shown[str | None] = None


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One finding: something to change in the script.

    Attributes:
        kind: its name in `neuron_sim/diagnostics/advice.py`.
        severity: ``error``, ``warning`` or ``note``.
        line: ``train.py:88``, the user's line to change; ``?`` where it is not known.
        message: what happens.
        advice: what to change.
        count: how often it happened in the rehearsal.
        seconds: how long it took here; not what it would take on Trainium.
    """

    kind: Shown[str] = "?"
    severity: Shown[str] = "note"
    line: Shown[str] = "?"
    message: Shown[str] = ""
    advice: Shown[str] = ""
    count: Shown[int] = 0
    seconds: Shown[float] = 0.0

    def __str__(self) -> str:
        """The finding as the job's log has it."""
        return f"{self.severity}: {self._place}{self.message} {self.advice}"

    @property
    def is_to_change(self) -> bool:
        """Whether there is something to change for trn1: what XLA takes to compile here is this machine's affair."""
        return self.kind != "slow_compile"

    @property
    def trains_wrongly(self) -> bool:
        """Whether its cost is not time: the script may not train what it means to. Of such kinds only some are errors,
        for with others it may mean to (cores that hold parts of one model, or models of their own).
        """
        return self.kind in WRONG_RESULT

    @property
    def in_short(self) -> str:
        """The first sentence of the message, and what to change."""
        happens, more, _ = self.message.partition(". ")
        return f"{self._place}{happens}{'.' if more else ''} {self.advice}"

    @property
    def _place(self) -> str:
        return "" if self.line == "?" else f"{self.line}: "


_NOTHING_RAN = Diagnostic(
    kind="device_unused",
    severity="warning",
    message="Nothing ran on a NeuronCore, which trn1 would bill.",
    advice="To train on them the script imports torch_xla and moves its model to torch_xla.device().",
)
"""The finding for a job that used no core; no core can report it."""


def worst_first(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort findings by severity, then wrong results before slow ones, then by seconds lost, then by count."""

    def rank(one: Diagnostic) -> tuple[int, bool, float, int]:
        severity = (*SEVERITIES, one.severity).index(one.severity)  # an unknown one: last
        return severity, not one.trains_wrongly, -one.seconds, -one.count

    return tuple(sorted(found, key=rank))


@dataclass(frozen=True, kw_only=True)
class Seconds:
    """Seconds of the job on the rehearsal's machine."""

    training_total: Shown[float | None] = None
    container: Shown[float | None] = None
    first_step_after: Shown[float | None] = None


@dataclass(frozen=True, kw_only=True)
class Program:
    """One of several scripts that a job ran on the device. Steps: of its first core.

    ``trial``: neuron_parallel_compile ran it, only to compile its graphs.
    """

    script: Shown[str | None] = None
    world_size: Shown[int | None] = None
    steps: Shown[int] = 0
    training_steps: Shown[int] = 0
    trial: Shown[bool] = False


@dataclass(frozen=True, kw_only=True)
class InstanceGroup:
    """One instance group of a job that runs on several instance types."""

    instance_type: Shown[str] = ""
    instance_count: Shown[int] = 0


@dataclass(frozen=True, kw_only=True)
class Spot:
    """The simulated interruptions of managed spot training, and its assumed discount."""

    interruptions_simulated: Shown[int | None] = None
    interruptions_asked: Shown[int | None] = None
    seed: Shown[int | None] = None
    discount_assumed: Shown[float | None] = None


@dataclass(frozen=True, kw_only=True)
class Counters:
    """A job's counters.json. ``train``, ``other``: None if no such step ran on the device.

    ``programs``: the scripts, if the job ran several; all other members are of the first, which trained the longest.
    """

    job: Shown[str | None] = None
    instance_type: str
    instance_count: Annotated[int, Limits(1, MOST_INSTANCES)]
    instance_groups: Shown[tuple[InstanceGroup, ...] | None] = None
    instance_cores: Shown[int | None] = None
    cores_used: AtLeastOne | None = None
    world_size: AtLeastOne | None = None
    framework_version: Shown[str | None] = None
    local_cores: Shown[int | None] = None
    host_cpu: Shown[str | None] = None
    parameters: Parameters | None = None
    train: Steps | None = None
    other: Steps | None = None
    input: Input | None = None
    graphs: Graphs
    device_memory_peak_bytes: Shown[int | None] = None
    device_memory: Shown[DeviceMemory | None] = None
    diagnostics: Shown[tuple[Diagnostic, ...] | None] = None
    seconds: Shown[Seconds] = field(default_factory=Seconds)
    programs: Shown[tuple[Program, ...] | None] = None
    attempts: Shown[int | None] = None
    spot: Shown[Spot | None] = None

    @property
    def as_one_process(self) -> bool:
        """Whether the script ran as one process although there were several cores."""
        return self.world_size == 1 and (self.local_cores or self.instance_cores or 1) > 1

    @property
    def compiled_only(self) -> bool:
        """Whether the script ran only under neuron_parallel_compile, to compile its graphs."""
        return bool(self.programs) and all(program.trial for program in self.programs or ())

    @property
    def cores_of_a_copy(self) -> int:
        """How many cores share one copy of the model; 1 unless its layers are split."""
        return 1 if self.parameters is None else self.parameters.cores

    def found(self, *, came_through: bool) -> tuple[Diagnostic, ...] | None:
        """The findings, worst first; None: the simulator did not look for any.

        ``came_through``: the job ended without failure; only then it is a finding that nothing ran on the device.
        """
        if self.diagnostics is None:
            return None
        unused = came_through and not self.graphs.count
        return worst_first(self.diagnostics or ((_NOTHING_RAN,) if unused else ()))

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Counters:
        """Read the object of a ``counters.json``.

        Raises:
            InvalidCounters: another schema, or a missing or impossible member, which is named.
        """
        if document.get("schema") != SCHEMA:
            raise InvalidCounters(
                f"counters have schema {quoted(document.get('schema'))}; this version reads {SCHEMA!r}"
            )
        return read(cls, document)

    def to_dict(self) -> dict[str, Any]:
        """The object for a ``counters.json``. Members that only some jobs have are left out if None."""
        found = {"schema": SCHEMA, **asdict(self)}
        some = ("instance_groups", "programs", "attempts", "spot")
        return {key: value for key, value in found.items() if key not in some or value is not None}
