"""The host's part of a step: tracing its graph, which the device waits for when it is the longer.

PyTorch/XLA traces a step as lazy tensors in Python, looks its graph up at mark_step, and hands it to
the device, which works while the script traces the next step ("PyTorch on XLA Devices", openxla.org).
So tracing costs nothing as long as the device takes longer, and everything beyond that; and all of it
where the script reads a value of the device in each step, because then it cannot run ahead.

A rehearsal measures the tracing: it is the same Python, the same dispatch and the same lazy tensors as
on trn1, on another processor. Its share is large in scripts with many small operations: an optimizer that
updates 200 tensors one by one traces more than BERT base's forward pass does.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidInput
from .fixed_costs import Assumed

HOST_SPEED = Assumed(1.0, 0.65, 1.6)
"""Seconds a trn1 host takes for what took one second here. Assumption: its processors and those of today's
laptops and CI machines lie within this. Taken for the hosts of GPUs too, where a loader was timed elsewhere."""

REFERENCE_S = 0.00511
"""Seconds of the simulator's reference work (`neuron_sim.counters.host_reference`) on a trn1 host. Between two that
others' figures tell. A Llama of 362 million weights in optimum-neuron's NeuronTrainer was recorded on a trn1.2xlarge in
67.5 ms (forward) and 155.5 ms (with recomputation, backward), its own log says (alpharomercoma/torchneuronx@51b1d0c5,
trn1/results/phase4/pretrain_nt_362m_mb8.log); here that takes 14.7 and 29.9 times as long as the work, so 0.0050 s.
AWS's published BERT base is met where its step takes 143 ms to record, which is 25.2 to 28.2 times the work (three
rehearsals): 0.0053 s. All on an Intel Xeon, model 167."""
FORWARD_TRACE_S, BACKWARD_TRACE_S, OPTIMIZER_TRACE_S = 0.0023, 0.0025, 0.0010
"""Seconds in which a trn1 host records a transformer's layer, and its part of AdamW, where nobody rehearsed it: those
of that Llama's 32 layers, recorded here with torch's AdamW, in units of `REFERENCE_S`."""
PLAIN_TRACE_S_PER_LAYER = 0.012
"""The same of a plain script that is slow at it: the 143 ms of BERT base's 12 layers (`published.bert_rehearsal`)."""


@dataclass(frozen=True)
class HostWork:
    """What the script's process does for one step.

    Args:
        trace_s: processor seconds of tracing one step, measured in the rehearsal.
        reads: part of the steps, 0 to 1, in which the script read a value of the device.
        launch_s: modelled seconds in which the host of a GPU launches the step (`plain_script.launching_s`); None: the
            rehearsal did not count what is launched.

    Raises:
        InvalidInput: negative seconds, or a part outside 0 to 1.
    """

    trace_s: float
    reads: float = 0.0
    launch_s: float | None = None

    def __post_init__(self) -> None:
        """Check both."""
        if not self.trace_s >= 0:
            raise InvalidInput(f"tracing a step takes 0 seconds or more, not {self.trace_s}")
        if not 0 <= self.reads <= 1:
            raise InvalidInput(
                f"the part of the steps that read values lies between 0 and 1, not {self.reads}"
            )

    @classmethod
    def measured(cls, trace_s: float, reads: float, reference_s: float | None) -> HostWork:
        """As a rehearsal measured it; on a slower or busier machine both times are longer, and their ratio stays.

        ``reference_s``: of the reference work there; None: not measured, and the seconds count as they are.
        """
        return cls(trace_s if not reference_s else trace_s * REFERENCE_S / reference_s, reads)

    def not_hidden_s(self, device_s: float, slowness: float) -> float:
        """Seconds that tracing adds to a device's ``device_s``. ``slowness``: see `HOST_SPEED`."""
        tracing = self.trace_s * slowness
        return self.reads * tracing + (1 - self.reads) * max(0.0, tracing - device_s)
