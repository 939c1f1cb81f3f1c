"""torch_xla's names for things by framework version, and the script's own names for torch_xla's modules."""

from __future__ import annotations

import ast

from windtunnel.porting.nodes import constant
from windtunnel.porting.script import Script

MODULES = {
    "os": "os",
    "torch": "torch",
    "torch_xla": "torch_xla",
    "xm": "torch_xla.core.xla_model",
    "pl": "torch_xla.distributed.parallel_loader",
    "xr": "torch_xla.runtime",
}
"""Usual names of modules, in the order in which they are imported."""
BACKEND = "torch_xla.distributed.xla_backend"
SEEDS_OF_DEVICE = ("torch_xla.core.xla_model.set_rng_state", "torch_xla.manual_seed")
"""What seeds the device. torch.manual_seed does not, nor does torch.set_rng_state."""
_NEW_NAMES = (2, 7)
"""Since this version torch_xla.device() and xr.world_size() replace those of xla_model."""
_WAITING_SYNC = (2, 8)
"""Since this version torch_xla.sync() can be told to wait."""
SAVE_ALONE = (2, 1)
"""Since this version xm.save() no longer waits for all processes: https://github.com/pytorch/xla/pull/4926."""
NO_NUMBER = (2, 6)
"""Since this version xmp.spawn raises when it is told a number of processes, which it ignored with a warning since 2.1:
AWS Neuron documentation, "Introducing PyTorch 2.6 Support".
"""
GONE = {
    ("torch_xla.core.xla_model", "xrt_world_size"): ((2, 6), "xr.world_size"),
    ("torch_xla.core.xla_model", "get_ordinal"): ((2, 6), "xr.global_ordinal"),
    ("torch_xla.core.xla_model", "parse_xla_device"): ((2, 6), ""),
    ("torch_xla.runtime", "xla_device"): ((2, 7), "torch_xla.device"),
    ("torch_xla.runtime", "using_pjrt"): ((2, 4), ""),
    ("torch_xla.runtime", "requires_pjrt"): ((2, 4), ""),
    ("torch_xla.experimental", "compile"): ((2, 6), "torch_xla.compile"),
}
"""Names that torch_xla no longer has: the last version that has each, and what replaces it, by its usual module."""
BROADCAST = (2, 1)
"""Since this version there is xm.broadcast_master_param()."""
WITHOUT_FUNCTIONALIZATION = (2, 1)
"""Since this version torch-neuronx sets XLA_DISABLE_FUNCTIONALIZATION: AWS Neuron documentation, "PyTorch NeuronX
Environment Variables".
"""


class Names:
    """The expressions that edits write. ``version``: the framework's, e.g. "2.9"."""

    def __init__(self, script: Script, version: str) -> None:
        self._script = script
        self.version = tuple(int(part) for part in version.split(".")[:2])
        """Major and minor, to be compared with those above."""
        self._new = self.version >= _NEW_NAMES
        self._bound = script.bound_names()

    def module(self, usual: str) -> str:
        """The script's name for a module, or the one to import it by: the usual one, if that is free."""
        dotted = MODULES[usual]
        known = [name for name, full in self._script.imports.items() if full == dotted]
        return known[0] if known else (f"xla_{usual}" if usual in self._bound else usual)

    def device(self) -> str:
        return f"{self.module('torch_xla')}.device()" if self._new else f"{self.module('xm')}.xla_device()"

    def end_of_step(self) -> str:
        return f"{self.module('torch_xla')}.sync()" if self._new else f"{self.module('xm')}.mark_step()"

    def finish(self) -> str:
        """Statements that run what is pending, and wait for it: ``xm.wait_device_ops()`` alone runs nothing."""
        if self.version >= _WAITING_SYNC:
            return f"{self.module('torch_xla')}.sync(wait=True)"
        return f"{self.end_of_step()}; {self.module('xm')}.wait_device_ops()"

    def told_by_torchrun(self, name: str, default: int) -> str:
        """An expression for a number that torchrun sets in each process's environment."""
        return f'int({self.module("os")}.environ.get("{name}", {default}))'

    def world_size(self) -> str:
        return f"{self.module('xr')}.world_size()" if self._new else f"{self.module('xm')}.xrt_world_size()"

    def rank(self) -> str:
        return f"{self.module('xr')}.global_ordinal()" if self._new else f"{self.module('xm')}.get_ordinal()"

    def sampler(self) -> str:
        known = [name for name, full in self._script.imports.items() if full.endswith(".DistributedSampler")]
        return known[0] if known else "DistributedSampler"

    def missing_imports(self, edited: Script) -> list[str]:
        """Lines that import the modules of torch_xla which the edited script uses and does not import."""
        needed = edited.used_names() - edited.bound_names()
        lines = []
        for usual, dotted in MODULES.items():
            name = self.module(usual)
            if name in needed:
                lines.append(f"import {dotted}" + (f" as {name}" if name != dotted else ""))
        named = any(constant(node) == "xla" for node in edited.walk(ast.Constant))
        other = any(map(edited.joins_group, ("nccl", "gloo", "mpi")))
        by_option = named and edited.joins_group("") and not other  # args.dist_backend
        joins = edited.joins_group("xla") or by_option
        if joins and BACKEND not in edited.imported_modules:
            lines.append(f'import {BACKEND}  # registers the backend "xla"')
        known = "torch_xla" in edited.packages or any("torch_xla" in line for line in lines)
        if named and not known:
            lines.append("import torch_xla")  # without it torch knows no device "xla"
        return lines
