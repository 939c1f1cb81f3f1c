"""Native PyTorch on Trainium (TorchNeuron): the device "neuron", which the simulator does not have.

A public beta since Neuron 2.33 (October 2026), with PyTorch 2.13 and 2.14, on trn2 and trn3 (AWS's release notes of
TorchNeuron). trn1 trains with PyTorch/XLA.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import arguments, constant
from windtunnel.porting.subject import Subject

_TAKE_IT = ("device", "to", "compile", "autocast", "init_process_group", "set_default_device")
"""Ends of the names of calls that take the device by position."""
_KEYWORDS = ("device", "device_type", "backend")


def of_native_pytorch(subject: Subject) -> Iterator[Finding]:
    """A finding on the first mention: all else in such a script is as on a GPU."""
    for call, _ in subject.script.calls:
        takes = subject.script.called(call) in _TAKE_IT  # Net().to("neuron"), too
        given = arguments(call) if takes else [one.value for one in call.keywords if one.arg in _KEYWORDS]
        if any(_is_neuron(value) for value in given):
            yield Finding(
                call.lineno,
                'the device "neuron" belongs to native PyTorch (TorchNeuron, a beta for trn2 and trn3), which is not '
                "simulated: it fails here, and on trn1. For trn1, and for PyTorch up to 2.9, use "
                'torch_xla.device() and the process group "xla".',
                kind="device_unused",
            )
            return


def _is_neuron(node: ast.expr) -> bool:
    value = constant(node)
    return isinstance(value, str) and value.partition(":")[0] == "neuron"
