"""The errors that the simulator raises.

NeuronSimError
├── NotSimulatedError      a real feature that is not simulated (also an AttributeError, so that probing works)
├── TopologyError          an instance type or core count that does not exist
├── DeviceMemoryError      more than a core's memory is needed
├── OutOfBoundsError       an index outside of an embedding
├── HostMemoryError        this machine's memory does not suffice to play the device
├── CoreBusyError          a core that another process holds
├── CompilerFlagError      NEURON_CC_FLAGS that the Neuron compiler would refuse
├── CustomOperatorError    a custom C++ operator that cannot be built, or whose functions contradict each other
├── CompilationError       a graph that the Neuron compiler is documented to refuse
└── CollectiveError        a collective that cannot complete
    ├── MismatchError      the ranks called different collectives
    └── PeerLostError      a rank ended, or did not come in time
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class NeuronSimError(RuntimeError):
    """Root of the simulator's errors."""


class NotSimulatedError(NeuronSimError, AttributeError):
    """A feature of the real device that the simulator refuses rather than ignores."""

    def __init__(self, feature: str, instead: str = "") -> None:
        advice = f" {instead}" if instead else ""
        super().__init__(f"{feature} is not simulated by Windtunnel's NeuronCores.{advice}")


def refusal(feature: str, instead: str = "") -> Callable[..., Any]:
    """A function in the place of a real feature: it can be imported, and raises NotSimulatedError when called."""

    def refused(*arguments: Any, **keywords: Any) -> Any:
        raise NotSimulatedError(feature, instead)

    refused.__name__ = refused.__qualname__ = feature.rpartition(".")[2]
    return refused


class TopologyError(NeuronSimError):
    """An instance type that does not exist, or a number of cores that it does not have."""


class DeviceMemoryError(NeuronSimError):
    """The script needs more memory than a core of the device has; the message is the Neuron runtime's."""


class OutOfBoundsError(NeuronSimError):
    """An index outside of an embedding's rows, at which the Neuron runtime fails the step."""

    def __init__(self, index: int, rows: int, line: str) -> None:
        super().__init__(
            f"{line}: index {index:,} is looked up in an embedding of {rows:,} rows (0 to {rows - 1:,}). XLA would "
            "take the nearest row. On the device the step fails: NRT_EXEC_OOB (status 1006), scatter/gather (indirect "
            "memory copy), due to out-of-bound access. Mend the indices, or give the embedding more rows: "
            "model.resize_token_embeddings(len(tokenizer))."
        )


class HostMemoryError(NeuronSimError):
    """The device would have enough memory, but the machine that plays it has too little."""


class CoreBusyError(NeuronSimError):
    """Another process holds a NeuronCore that this one asks for."""


class CompilerFlagError(NeuronSimError):
    """A value or a combination of values in NEURON_CC_FLAGS that neuronx-cc does not take."""


class CustomOperatorError(NeuronSimError):
    """A custom C++ operator whose sources cannot be compiled, or whose functions contradict each other."""


class CompilationError(NeuronSimError):
    """A graph that neuronx-cc is documented to refuse."""

    def __init__(self, reasons: str, source: str = "?") -> None:
        self.reasons = reasons
        graph = "this graph" if source == "?" else f"the graph that {source} runs"
        super().__init__(
            f"neuronx-cc would not compile {graph} for the device:\n{reasons}\n"
            "Change what the script computes there, or do it on the CPU: tensor.cpu()."
        )


class CollectiveError(NeuronSimError):
    """A collective operation that cannot complete."""


class MismatchError(CollectiveError):
    """The ranks of a group called different collectives, or with different shapes."""


class PeerLostError(CollectiveError):
    """Another rank of the group has ended, or did not join in time."""
