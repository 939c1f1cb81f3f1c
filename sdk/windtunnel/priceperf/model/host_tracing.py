"""The host's part of a step: tracing its graph. The device waits for it if tracing takes longer than the device.

PyTorch/XLA traces a step as lazy tensors in Python, looks its graph up at mark_step, and hands it to
the device, which works while the script traces the next step ("PyTorch on XLA Devices", openxla.org).
So only the part of tracing that is longer than the device's work costs time. If the script reads a value
from the device in each step, it cannot run ahead, and all of the tracing costs time.

A rehearsal measures the tracing: it is the same Python, the same dispatch and the same lazy tensors as
on trn1, on another processor. Tracing is long in scripts with many small operations: an optimizer that
updates 200 tensors one by one takes longer to trace than BERT base's forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidInput
from .fixed_costs import Assumed

HOST_SPEED = Assumed(1.0, 0.65, 1.6)
"""Seconds that a trn1 host takes for what takes one second on the rehearsal's machine. Assumption: the processors of
today's laptops and CI machines lie in this range. Also used for GPU hosts, and for loaders timed on another machine."""

REFERENCE_S = 0.00511
"""Seconds of the simulator's reference work (`neuron_sim.counters.host_reference`) on a trn1 host: a value between two
that published figures give. (1) A Llama of 362 million weights in optimum-neuron's NeuronTrainer was traced on a
trn1.2xlarge in 67.5 ms (forward) and 155.5 ms (with recomputation, backward), according to its own log
(alpharomercoma/torchneuronx@51b1d0c5, trn1/results/phase4/pretrain_nt_362m_mb8.log); in a rehearsal tracing takes 14.7
and 29.9 times as long as the reference work, so 0.0050 s. (2) The prediction of AWS's published BERT base is right if
its step takes 143 ms to trace, which is 25.2 to 28.2 times the reference work (three rehearsals): 0.0053 s. All
rehearsals on an Intel Xeon, model 167."""
FORWARD_TRACE_S, BACKWARD_TRACE_S, OPTIMIZER_TRACE_S = 0.0023, 0.0025, 0.0010
"""Seconds in which a trn1 host traces a transformer's layer, and its part of AdamW, if it was not rehearsed: those
of that Llama's 32 layers, traced in a rehearsal with torch's AdamW, in units of `REFERENCE_S`."""
PLAIN_TRACE_S_PER_LAYER = 0.012
"""The same for a plain script that traces slowly: the 143 ms of BERT base's 12 layers (`published.bert_rehearsal`)."""


@dataclass(frozen=True)
class HostWork:
    """What the script's process on the host does for one step.

    Args:
        trace_s: processor seconds in which a trn1 host traces one step.
        reads: part of the steps, 0 to 1, in which the script read a value of the device.
        launch_s: modelled seconds in which the host of a GPU launches the step (`plain_script.launching_s`); None: the
            rehearsal did not count what is launched.
        is_measured: False if no step ran without compiling: then ``trace_s`` follows from what is launched.

    Raises:
        InvalidInput: negative seconds, or a part outside 0 to 1.
    """

    trace_s: float
    reads: float = 0.0
    launch_s: float | None = None
    is_measured: bool = True

    def __post_init__(self) -> None:
        """Check the seconds and the part."""
        if not self.trace_s >= 0:
            raise InvalidInput(f"tracing a step takes 0 seconds or more, not {self.trace_s}")
        if not 0 <= self.reads <= 1:
            raise InvalidInput(
                f"the part of the steps that read values lies between 0 and 1, not {self.reads}"
            )

    @classmethod
    def measured(cls, trace_s: float, reads: float, reference_s: float | None) -> HostWork:
        """Convert the tracing time of a rehearsal to that of a trn1 host, by the reference work on both.

        On a slower or busier machine both times are longer, and their ratio stays.
        ``reference_s``: seconds of the reference work in the rehearsal; None: not measured, ``trace_s`` is kept.
        """
        return cls(trace_s if not reference_s else trace_s * REFERENCE_S / reference_s, reads)

    def not_hidden_s(self, device_s: float, slowness: float) -> float:
        """Seconds that tracing adds to the ``device_s`` of a step on the device. ``slowness``: see `HOST_SPEED`."""
        tracing = self.trace_s * slowness
        return self.reads * tracing + (1 - self.reads) * max(0.0, tracing - device_s)
