"""counters.json as objects: the backend writes it from them, report and model read it into them.

docs/reference/counters.md says what each member means. A new member is one line here.

They are read strictly (`strict_reader`): what the model computes with must be there and be a figure. It is
said at a member where that is otherwise: one with a default may be missing or null, as nothing counted it
or an earlier version did not know it; one that is only `Shown` is left out where it is no figure.
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
"""Assumption: more than any cluster has; it keeps figures in the range of numbers."""
SEVERITIES = ("error", "warning", "note")
"""Of what is found in a script, worst first."""
WRONG_RESULT = ("no_exchange", "same_data", "no_number", "untied_weights", "unequal_weights", "wrong_split")
"""Kinds that no seconds measure."""


@dataclass(frozen=True, kw_only=True)
class Collectives:
    """All of one kind. ``bytes``: the payload of one rank."""

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
    """Element-wise work; see the fusion model."""

    fused_bytes: float
    unfused_bytes: Shown[float | None] = None
    vector_elements: Shown[float | None] = None
    scalar_elements: Shown[float | None] = None


@dataclass(frozen=True, kw_only=True)
class Elementwise:
    """What grows with the batch, and what does not."""

    activations: Kernels
    state: Kernels | None = None


@dataclass(frozen=True, kw_only=True)
class ScaledDotProductAttention:
    """Attention scores that it computed, those of all calls and those of calls with ``is_causal``."""

    scores: float
    causal_scores: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """Everything by class of operation.

    ``convolutions``: those of the products that are one; earlier versions told none. ``sdpa``: scaled dot product
    attention, which is among the products, too.
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
    """Of gradient accumulation: the steps in which an optimizer stepped. Their own collectives, as sums.

    ``passes``: steps that the script goes through for one of them, whatever was cut short; None: an earlier version
    did not look. ``least_trace_seconds``: what such a step takes longer to trace than one without.
    """

    steps: AtLeastOne
    passes: AtLeastOne | None = None
    collectives: Mapping[str, Collectives] = field(default_factory=dict)
    least_trace_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """What trn1 computes twice because the script reads values in the midst of steps: of their sums, that part.

    ``fused_bytes``: of activations.
    """

    flops: float
    fused_bytes: float


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Sums over steps. Work and collectives: of one core. Samples: of all ranks. Seconds: of this machine.

    ``updates``: of gradient accumulation; None where the optimizer steps each time, or nobody noted it.
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
        """For one step of the optimizer. A rehearsal that ended within an accumulation has more steps for each."""
        updates = self.updates
        return 1 if updates is None else updates.passes or max(1, round(self.steps / updates.steps))


@dataclass(frozen=True, kw_only=True)
class Split:
    """How cores hold one copy of a model together. ``zero1``: copies share the optimizer's state (ZeRO-1).

    ``config``: of the model, as transformers has it in its config.json, plain values alone; None: it has none.
    ``lora_rank``: of adapters that are trained in place of the weights.
    """

    tensor_parallel: AtLeastOne
    pipeline_parallel: AtLeastOne
    zero1: bool = False
    config: Mapping[str, Plain] | None = None
    lora_rank: AtLeastOne | None = None

    @property
    def cores(self) -> int:
        """Of one copy."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What one rank holds, as its optimizers tell: ``count`` is what they train there.

    ``model``: of the whole model, with other ranks' shards and with ``frozen`` ones; None: not counted.
    ``cores``: so many hold one copy of the model together, and go through the same batches; ``split`` has how.
    ``sdpa_elsewhere``: transformers chose eager attention because torch_xla is there, and elsewhere chooses
    scaled dot product attention; ``is_causal`` is what that is told then.
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
    """Bytes by use at the fullest moment of a core, and at which line of the script that was."""

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
    """One thing to change.

    Attributes:
        kind: what it is, as `neuron_sim/diagnostics/advice.py` names it.
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
        """As in the job's log."""
        return f"{self.severity}: {self._place}{self.message} {self.advice}"

    @property
    def in_short(self) -> str:
        """What happens in one sentence, and what to change."""
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
"""What no core can tell, as none has run."""


def worst_first(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By severity, then a wrong result before a slow one, by the seconds lost here, by how often it happened."""

    def rank(one: Diagnostic) -> tuple[int, bool, float, int]:
        severity = (*SEVERITIES, one.severity).index(one.severity)  # an unknown one: last
        return severity, one.kind not in WRONG_RESULT, -one.seconds, -one.count

    return tuple(sorted(found, key=rank))


@dataclass(frozen=True, kw_only=True)
class Seconds:
    """Of the job here."""

    training_total: Shown[float | None] = None
    container: Shown[float | None] = None
    first_step_after: Shown[float | None] = None


@dataclass(frozen=True, kw_only=True)
class Program:
    """A script that a job ran on the device, among others. Steps: of its first core.

    ``trial``: neuron_parallel_compile ran it for its graphs.
    """

    script: Shown[str | None] = None
    world_size: Shown[int | None] = None
    steps: Shown[int] = 0
    training_steps: Shown[int] = 0
    trial: Shown[bool] = False


@dataclass(frozen=True, kw_only=True)
class InstanceGroup:
    """Of a job on instances of several types."""

    instance_type: Shown[str] = ""
    instance_count: Shown[int] = 0


@dataclass(frozen=True, kw_only=True)
class Spot:
    """What was simulated of managed spot training, and the saving that is assumed for it."""

    interruptions_simulated: Shown[int | None] = None
    interruptions_asked: Shown[int | None] = None
    seed: Shown[int | None] = None
    discount_assumed: Shown[float | None] = None


@dataclass(frozen=True, kw_only=True)
class Counters:
    """A job's counters.json. ``train``, ``other``: None where no such step ran on the device.

    ``programs``: of a job that ran several; all else is of the first, which trained for longest.
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
        """Whether the script started one process where there was a core for each of several."""
        return self.world_size == 1 and (self.local_cores or self.instance_cores or 1) > 1

    @property
    def compiled_only(self) -> bool:
        """Whether the script ran under neuron_parallel_compile alone, for its graphs."""
        return bool(self.programs) and all(program.trial for program in self.programs or ())

    @property
    def cores_of_a_copy(self) -> int:
        """How many cores hold one copy of the model: several, where its layers are split."""
        return 1 if self.parameters is None else self.parameters.cores

    def found(self, *, came_through: bool) -> tuple[Diagnostic, ...] | None:
        """What there is to change, worst first; None: the simulator did not look.

        ``came_through``: the job has ended, and did not fail: then a device that nothing ran on is a finding.
        """
        if self.diagnostics is None:
            return None
        unused = came_through and not self.graphs.count
        return worst_first(self.diagnostics or ((_NOTHING_RAN,) if unused else ()))

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Counters:
        """From the object in a ``counters.json``.

        Raises:
            InvalidCounters: another schema, or a missing or impossible member, which is named.
        """
        if document.get("schema") != SCHEMA:
            raise InvalidCounters(
                f"counters have schema {quoted(document.get('schema'))}; this version reads {SCHEMA!r}"
            )
        return read(cls, document)

    def to_dict(self) -> dict[str, Any]:
        """The object for a ``counters.json``. What only some jobs have is left out for the others."""
        found = {"schema": SCHEMA, **asdict(self)}
        some = ("instance_groups", "programs", "attempts", "spot")
        return {key: value for key, value in found.items() if key not in some or value is not None}
