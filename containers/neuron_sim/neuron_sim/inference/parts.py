"""The part of a traced module's forward that cuts a batch into parts of the traced size, in TorchScript."""

from __future__ import annotations

from typing import Any

from neuron_sim.errors import NotSimulatedError

_LOOP = """\
    if self.expectation.any_batch:
        kept: List[List[Tensor]] = []
        for start in range(0, max(batch, 1), {rows}):
            part = self.model({parts})
            kept.append([{collected}])
        return {joined}
"""


def obstacle(model: Any, expectation: Any) -> Exception | None:
    """Why a traced graph takes one batch size only, or None: inputs without a common one, or outputs that are not
    tensors.
    """
    sizes = {shape[0] if shape else 0 for shape in expectation.shapes}
    if len(sizes) != 1 or 0 in sizes:
        return ValueError(
            f"dynamic_batch needs inputs with one batch size as their first dimension, not {expectation.shapes}"
        )
    if not all(kind.kind() == "TensorType" for kind in _outputs(model)):
        return NotSimulatedError(
            f"torch_neuronx.dynamic_batch of a module that returns {_output(model)}",
            "Return a tensor or a tuple of tensors.",
        )
    return None


def loop(model: Any, expectation: Any) -> str:
    """Lines of forward that answer with all parts joined if any batch size is allowed; none if there is an obstacle."""
    if obstacle(model, expectation):
        return ""
    shapes = expectation.shapes
    parts = ", ".join(f"self.expectation.part(input_{index}, start, {index})" for index in range(len(shapes)))
    count = len(_outputs(model))
    joined = [f"torch.cat([row[{index}] for row in kept])[:batch]" for index in range(count)]
    if _output(model).kind() == "TensorType":
        return _LOOP.format(rows=shapes[0][0], parts=parts, collected="part", joined=joined[0])
    collected = ", ".join(f"part[{index}]" for index in range(count))
    return _LOOP.format(rows=shapes[0][0], parts=parts, collected=collected, joined=f"({', '.join(joined)},)")


def _output(model: Any) -> Any:
    """The type that a traced graph returns."""
    (output,) = model.graph.outputs()
    return output.type()


def _outputs(model: Any) -> list[Any]:
    """The types in the tuple that a traced graph returns, or the one that it returns instead."""
    kind = _output(model)
    return list(kind.elements()) if kind.kind() == "TupleType" else [kind]
