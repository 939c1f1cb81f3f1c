"""What `neuron-top` shows, as lines of text made from a report of `neuron-monitor`. Pure.

Sections and categories: AWS Neuron documentation, "Neuron Top User Guide".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ALL = "all"
_GIB = 2**30
_BAR = 30

Report = Mapping[str, Any]


def tabs(report: Report) -> list[str]:
    """``all``, and the tag of each process."""
    return [ALL, *(str(runtime["neuron_runtime_tag"]) for runtime in report["neuron_runtime_data"])]


def lines(report: Report, tab: str = ALL, *, flops: bool = False) -> list[str]:
    """The screen. ``flops``: teraflops in place of utilization, as the F key chooses."""
    chosen = [
        runtime
        for runtime in report["neuron_runtime_data"]
        if tab in (ALL, str(runtime["neuron_runtime_tag"]))
    ]
    instance = report["instance_info"]
    return [
        f"neuron-top (simulated)   {instance['instance_id']}   {instance['instance_type']}",
        "",
        *_cores(report, chosen, flops),
        "",
        *_processors(report, chosen),
        "",
        *_memory(chosen),
        "",
        *_models(chosen),
        "",
        "  ".join(f">{name}<" if name == tab else f" {name} " for name in tabs(report)),
    ]


def _cores(report: Report, chosen: Sequence[Report], flops: bool) -> list[str]:
    hardware = report["neuron_hardware_info"]
    used: dict[str, Mapping[str, Any]] = {}
    for runtime in chosen:
        used.update(_group(runtime, "neuroncore_counters").get("neuroncores_in_use", {}))
    title = f"NeuronCore {hardware['neuroncore_version']} {'TFLOPS' if flops else 'Utilization'}"
    rows = [title]
    for core in sorted(used, key=int):
        rows.append(f"  NC{core:<3} {_meter(used[core], flops)}")
    return rows if used else [title, "  no process uses a NeuronCore"]


def _meter(core: Mapping[str, Any], flops: bool) -> str:
    if flops:
        return f"{core['flops'] / 1e12:.4f}" if "flops" in core else "not counted on this core"
    share = core["neuroncore_utilization"]
    return f"[{'|' * round(_BAR * share / 100):<{_BAR}}] {share:6.2f}%"


def _processors(report: Report, chosen: Sequence[Report]) -> list[str]:
    system = report["system_data"].get("vcpu_usage", {}).get("average_usage")
    own = [_group(runtime, "neuron_runtime_vcpu_usage").get("vcpu_usage") for runtime in chosen]
    found = [usage for usage in own if usage]
    return [
        "VCPU Utilization (user%, system%)",
        f"  System vCPU usage   {_pair(system)}",
        f"  Runtime vCPU usage  {_pair(_sums(found)) if found else '-'}",
    ]


def _memory(chosen: Sequence[Report]) -> list[str]:
    used = [_group(runtime, "memory_used").get("neuron_runtime_used_bytes", {}) for runtime in chosen]
    device = [one["neuron_device"] for one in used if "neuron_device" in one]
    rows = [
        "Memory Usage Summary",
        f"  Host Used Memory    {_size(sum(one.get('host', 0) for one in used))}",
        f"  Device Used Memory  {_size(sum(device)) if device else 'not known yet'}",
    ]
    parts: dict[str, int] = {}
    for one in used:
        for core in one.get("usage_breakdown", {}).get("neuroncore_memory_usage", {}).values():
            for name, size in core.items():
                parts[name] = parts.get(name, 0) + size
    names = {"tensors": "Tensors", "model_shared_scratchpad": "Model Scratchpad"}
    return rows + [f"    {names.get(name, name):<17} {_size(size)}" for name, size in parts.items()]


def _models(chosen: Sequence[Report]) -> list[str]:
    rows = ["Memory Usage Details"]
    for runtime in chosen:
        for model in _group(runtime, "memory_used").get("loaded_models", ()):
            core = model["subgraphs"]["sg_00"]
            size = _size(core["memory_used_bytes"]["neuron_device"])
            rows.append(
                f"  NC{core['neuroncore_index']} Model {model['model_id']:<3} {size:>10}  {model['name']}"
            )
    return rows if len(rows) > 1 else [rows[0], "  no model is loaded"]


def _group(runtime: Report, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = runtime["report"].get(name, {})
    return found


def _sums(usages: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(usage[name] for usage in usages) for name in ("user", "system")}


def _pair(usage: Mapping[str, float] | None) -> str:
    return "-" if usage is None else f"[{usage['user']:6.2f}%, {usage['system']:6.2f}%]"


def _size(size: float) -> str:
    return f"{size / _GIB:.2f} GB" if size >= _GIB else f"{size / 2**20:.1f} MB"
