"""The text of each finding: what happens, what it cost here, and what to change. Pure.

Findings about graphs that compile: `for_graphs`; about several cores: `for_cores`; about operations: `for_operations`.
"""

from __future__ import annotations

from collections.abc import Sequence

from neuron_sim.diagnostics import for_library
from neuron_sim.diagnostics.batch_sizes import Loader
from neuron_sim.diagnostics.findings import Finding, times

SYNC, WAIT = "torch_xla.sync(wait=True)", "xm.wait_device_ops()"
"""How a script writes a wait that fetches nothing."""


def host_read(
    line: str,
    how: Sequence[str],
    count: int,
    seconds: float,
    steps: int,
    cuts: int,
    again: int,
    library: str = "",
    *,
    evaluates: bool = False,
) -> Finding:
    """A value fetched from the device in the loop, or a wait for it. ``library``: which does it, if not the script.

    ``cuts``, ``again``: see `host_reads.Line`. ``evaluates``: the script trains, but not in the steps that read.
    """
    # The first screen of a report has room for the first sentence and the advice.
    repeated = ", and what it depends on, such as the forward pass, is computed again" if again else ""
    cut = (
        f" It cut the step into separate graphs {times(cuts)}, each compiled and run on its own."
        if cuts
        else ""
    )
    loop = "a loop that only evaluates" if evaluates else "the loop"
    if {SYNC, WAIT}.issuperset(how):
        what = " and ".join(how)
        instead = (
            "Leave the wait out: reading a value waits anyway. To time steps, wait before and after many."
        )
    else:
        what = f"{' and '.join(how)} on a device tensor"
        instead = "Do this in xm.add_step_closure(fn, args=(tensor,)), or every N steps only. Keep sums on the device."
    return Finding(
        "host_read",
        "warning",
        line,
        f"{what} in {loop}{for_library.inside(library)}: {count} times in {steps} steps, "
        f"{seconds:.2f} s of waiting here{repeated}. The host stops until the device has finished.{cut}",
        for_library.advice(library) or instead,
        count,
        seconds,
    )


def no_number(line: str, how: str, since: int, count: int) -> Finding:
    """A value that the script reads is NaN, each time since the training step ``since`` (from 1)."""
    return Finding(
        "no_number",
        "warning",
        line,
        f"{how} has read nan since training step {since} ({times(count)}). If this is the loss, the weights are lost: "
        "all further training is useless, and is billed.",
        "Usual causes: a learning rate that is too high, a mask of -inf over a whole row, a logarithm of 0 or a "
        "division by 0. torch.autograd.set_detect_anomaly(True) names the operation; run that on the CPU.",
        count,
    )


def device_unused(line: str, steps: int) -> Finding:
    """The model trains on the host's CPU."""
    return Finding(
        "device_unused",
        "error",
        line,
        f"the optimizer made {steps} steps with all parameters on the CPU: the NeuronCores are idle, and trn1 would "
        "bill them.",
        "Move the model to the device (model.to(torch_xla.device()), with import torch_xla), and iterate over "
        "torch_xla.distributed.parallel_loader.MpDeviceLoader(loader, device).",
        steps,
    )


def optimizer_before_move(line: str, moved: str, steps: int) -> Finding:
    """The optimizer holds parameters that the model no longer has. ``line``: where the optimizer was made."""
    return Finding(
        "optimizer_before_move",
        "error",
        line,
        f"the optimizer is made before the model moves to the device ({moved}), which makes new parameters: in "
        f"{steps} steps it changed none of them, so the model learns nothing, here and on trn1.",
        "Make the optimizer after .to().",
        steps,
    )


def model_left_device(line: str, left: str, steps: int) -> Finding:
    """The model's parameters were replaced during training. ``line``: where the optimizer was made."""
    return Finding(
        "optimizer_before_move",
        "error",
        left,
        f"the model leaves the device here and comes back with new parameters, which the optimizer ({line}) does not "
        f"hold: in {steps} steps since then it changed none of them. The model learns nothing more, here and on trn1.",
        "Save it from the device (xm.save(model.state_dict(), path) writes CPU tensors), move a copy "
        "(copy.deepcopy(model).cpu()), or make the optimizer anew.",
        steps,
    )


def no_gradients(line: str, steps: int) -> Finding:
    """An optimizer steps, and has nothing to change."""
    return Finding(
        "no_gradients",
        "error",
        line,
        f"the first {steps} steps of the optimizer changed nothing: none of its weights has a gradient.",
        "Call loss.backward() before the step. If the script does, the optimizer has other weights than the loss was "
        "computed with: make it from model.parameters().",
        steps,
    )


def step_without_end(line: str, steps: int, grown: Finding | None = None) -> Finding:
    """Nothing ends a step, so nothing is computed. ``grown``: what `for_graphs.growing_graphs` says of its reads."""
    read = (
        f" Each value that is read compiles all of it until then: {grown.count} graphs so far, each larger than the "
        f"one before ({grown.seconds:.1f} s of compiling here)."
        if grown
        else ""
    )
    return Finding(
        "step_without_end",
        "error",
        line,
        f"the optimizer made {steps} steps, and nothing ended a step: all their operations are one graph, which grows "
        f"until something ends it or memory is full. neuronx-cc would compile all of it at once.{read}",
        "Iterate over pl.MpDeviceLoader(loader, device), which ends a step with each batch, or call torch_xla.sync() "
        "(before 2.7 xm.mark_step()) after the optimizer's step.",
        steps,
        grown.seconds if grown else 0.0,
    )


def untied_weights(line: str, names: Sequence[str], more: int) -> Finding:
    """Modules that shared a parameter now have one each. ``more``: how many weights are trained in addition."""
    return Finding(
        "untied_weights",
        "warning",
        line,
        f"{' and '.join(names[:2])} were one parameter before .to() and are {'two' if len(names) == 2 else 'several'} "
        f"after it, here and on trn1: the model trains {more:,} more weights, and the copies drift apart.",
        "Tie them again after .to() and before the optimizer is made: model.tie_weights() of transformers, or "
        "model.head.weight = model.embedding.weight.",
        cause=names[0],
    )


def custom_operator(name: str, line: str, count: int) -> Finding:
    """A custom C++ operator of the script ran."""
    return Finding(
        "custom_operator",
        "note",
        line,
        f"the custom C++ operator {name} ran {times(count)}, on this machine's processor: its time on the device's "
        "GpSimd engine is not modelled, and no estimate has it. Here the graph ends before it; on trn1 it is in it.",
        "Measure it on trn1.",
        count,
        cause=name,
    )


def torch_compile(line: str) -> Finding:
    """The script uses torch.compile with torch_xla's backend."""
    return Finding(
        "torch_compile",
        "warning",
        line,
        "torch.compile runs here, but AWS does not support it on Neuron (PyTorch NeuronX 2.5 to 2.9).",
        "Leave it out: XLA compiles the whole step anyway.",
    )


def auto_cast(mode: str, dtype: str, rounds: bool) -> Finding:
    """WINDTUNNEL_SIMULATE_AUTO_CAST=1, and what NEURON_CC_FLAGS say. ``rounds``: whether anything is rounded."""
    asked = f"--auto-cast={mode} --auto-cast-type={dtype}"
    if mode == "none":
        said = (
            "NEURON_CC_FLAGS ask for no cast (neuronx-cc's default since Neuron 2.27), so nothing is rounded"
        )
        todo = "Up to Neuron 2.26 the default was --auto-cast=matmult: set that to rehearse it."
    elif not rounds:
        said, todo = (
            f"{asked} is not simulated, so nothing is rounded",
            "bf16, fp16 and tf32 can be rehearsed.",
        )
    else:
        rest = ". What else the device casts stays fp32 here" if mode == "all" else ""
        said = f"{asked}: fp32 inputs of products and convolutions are rounded to {dtype}, forward and backward{rest}"
        todo = "The rounding is counted as operations of the script: for time and cost, run without it."
    return Finding(
        "auto_cast", "note" if rounds else "warning", "WINDTUNNEL_SIMULATE_AUTO_CAST", f"{said}.", todo
    )


def eager_debug_mode(variable: str) -> Finding:
    """The variable for eager debug mode is set: operations run one by one."""
    return Finding(
        "eager_debug_mode",
        "warning",
        variable,
        "each operation is compiled and run by itself when its line runs, and an error is raised there. That is slow, "
        "and no steps, graphs or FLOPs are counted: this run has no estimate, and shows none of neuronx-cc's refusals.",
        "Unset it when the script is ready.",
    )


def eager_mode(line: str) -> Finding:
    """The script trains in torch_xla's eager mode. ``line``: where the optimizer steps."""
    return Finding(
        "eager_mode",
        "warning",
        line,
        "the optimizer steps in torch_xla's eager mode: each operation is compiled and run by itself (on trn1 by "
        "neuronx-cc, which is slow), and no steps, graphs or FLOPs are counted, so there is no estimate.",
        "Leave torch_xla.experimental.eager_mode(True) out, and end each step with torch_xla.sync() or "
        "pl.MpDeviceLoader. Or put the step into a function and call torch_xla.compile(function).",
    )


def input_bound(loader: Loader, share: float, waited: float, steps: int) -> Finding:
    """The device waits for a loader's data."""
    ahead = (
        "raise loader_prefetch_size and device_prefetch_size of MpDeviceLoader"
        if loader.reads_ahead
        else "let pl.MpDeviceLoader(loader, device) read ahead"
    )
    has = f" than its {loader.facts.workers}" if loader.facts and loader.facts.workers else ""
    workers = f"Give the DataLoader {'more ' if has else ''}workers{has} (num_workers)"
    return Finding(
        "input_bound",
        "warning",
        loader.iterated_at,
        f"the loop waited {waited:.1f} s for its input, {share:.0%} of the time of {steps} steps here. "
        "trn1 computes faster than this machine: there the share is larger.",
        f"{workers}, prepare data beforehand, or {ahead}.",
        steps,
        waited,
    )


def loader_failed(line: str, error: str, rank: int | None) -> Finding:
    """A loader's error ended the data early, unseen by the loop. ``rank``: this core's, if there are several."""
    where = "" if rank is None else f"on rank {rank} "
    return Finding(
        "loader_failed",
        "error",
        line,
        f"{where}the DataLoader raised {error} while MpDeviceLoader read ahead: torch_xla ends the loop there as if "
        "the data were over, here and on trn1, and the job goes on with what it has.",
        "Correct the dataset: the traceback is in the log. A loop over the DataLoader itself would raise the error.",
    )


def device_memory(line: str, message: str) -> Finding:
    """The core needed more memory than it has."""
    text, _, todo = message.partition(" To fit: ")
    return Finding("device_memory", "error", line, text, f"To fit: {todo}")


def memory_tight(line: str, share: float, parts: str, todo: str) -> Finding:
    """The core's memory was nearly full."""
    return Finding(
        "device_memory",
        "note",
        line,
        f"device memory was {share:.0%} full at its peak ({parts}). Temporaries are as XLA's CPU compiler plans "
        "them; neuronx-cc plans differently.",
        f"For more room: {todo}.",
    )
