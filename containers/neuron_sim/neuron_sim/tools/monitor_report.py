"""The metric groups of `neuron-monitor`, from what processes publish. Pure.

Schema: AWS Neuron documentation, "Neuron Monitor User Guide". A figure that the simulator does
not have is left out, and its group's ``error`` names it; nothing is made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_sim import topology
from neuron_sim.processes import Use
from neuron_sim.runtime import usage_reader

_NOTHING_NEW = "no step has ended in this period"

Published = dict[str, Any]
Group = dict[str, Any]


def neuroncore_counters(cores: Sequence[int], before: Published | None, after: Published | None) -> Group:
    """``neuroncore_utilization``: percent of the time in which graphs of this process were executing.

    A process computes on the first of its cores; ``flops`` are counted on the first core of a host.
    """
    elapsed, spent = _between(before, after)
    error = "" if elapsed else _NOTHING_NEW
    used: dict[str, Any] = {
        "neuroncore_utilization": round(min(100.0, 100 * spent("execution_seconds") / elapsed), 2)
        if elapsed
        else 0.0
    }
    if after is not None and after["counts"]["flops"] is not None:
        used["flops"] = int(spent("flops") / elapsed) if elapsed else 0
    elif elapsed:
        error = "flops: counted on the first core of a host only"
    idle = {str(core): {"neuroncore_utilization": 0.0} for core in cores[1:]}
    return {"neuroncores_in_use": {str(cores[0]): used, **idle}, "error": error}


def execution_stats(before: Published | None, after: Published | None) -> Group:
    """Executions that were completed between two looks, and the latency of the newest of them."""
    elapsed, spent = _between(before, after)
    since = before["time"] if before else 0.0
    newest = [seconds for ended, seconds in (after or {}).get("latencies", ()) if ended > since]
    return {
        "error_summary": {"generic": 0, "transient": 0, "hardware": 0},
        "execution_summary": {"completed": int(spent("executions")) if elapsed else 0},
        "latency_stats": {"total_latency": usage_reader.percentiles(newest), "device_latency": None},
        "error": "not simulated: numerical, model and runtime errors, device_latency",
    }


def memory_used(cores: Sequence[int], published: Published | None, use: Use | None) -> Group:
    """Memory of the process, on the host and, if known, on the device; in bytes."""
    host = use.resident_bytes if use else 0
    memory = (published or {}).get("device_memory")
    held = {} if memory is None else _device_memory(memory)
    error = "not simulated: constants, model_code, runtime_memory; host includes the memory that plays the device's"
    if memory is None:
        error = f"device memory is not known yet; {error}"
    used: Group = {
        "host": host,
        "usage_breakdown": {
            "host": {"application_memory": host},
            "neuroncore_memory_usage": {str(cores[0]): held},
        },
    }
    if memory is not None:
        used["neuron_device"] = sum(held.values())
    return {
        "neuron_runtime_used_bytes": used,
        "loaded_models": [
            _loaded_model(number, graph, cores[0])
            for number, graph in enumerate((published or {}).get("graphs", ()))
        ],
        "error": error,
    }


def runtime_vcpu_usage(before: Use | None, after: Use | None, elapsed_s: float, processors: int) -> Group:
    """Percent of all processors of the machine, as `vcpu_usage` counts."""
    if before is None or after is None or elapsed_s <= 0:
        return {"vcpu_usage": {"user": 0.0, "system": 0.0}, "error": "the process has ended"}
    share = 100 / elapsed_s / processors
    return {
        "vcpu_usage": {
            "user": round((after.user_seconds - before.user_seconds) * share, 2),
            "system": round((after.system_seconds - before.system_seconds) * share, 2),
        },
        "error": "",
    }


def neuron_hw_counters() -> Group:
    """No counters: there is no hardware with memory errors."""
    return {"neuron_devices": [], "error": "ECC events are not simulated"}


def instance_info(of: topology.Instance) -> Group:
    """The instance, without zone, network and image: this is not an EC2 instance."""
    nowhere = (
        "instance_name",
        "instance_availability_zone",
        "instance_availability_zone_id",
        "instance_region",
    )
    return {
        **dict.fromkeys(nowhere, ""),
        "instance_id": topology.SIMULATED_INSTANCE_ID,
        "instance_type": of.name,
        "ami_id": "",
        "subnet_id": "",
        "error": "simulated: this is not an EC2 instance",
    }


def neuron_hardware_info(of: topology.Instance, devices: int) -> Group:
    """The simulated devices."""
    return {
        "neuron_device_type": of.device_type,
        "neuron_device_version": of.device_version,
        "neuroncore_version": of.core_version,
        "neuron_device_count": devices,
        "neuron_device_memory_size": of.memory_per_device_bytes,
        "neuroncore_per_device_count": of.cores_per_device,
        "logical_neuroncore_config": of.logical_core_config,
        "error": "",
    }


def _between(before: Published | None, after: Published | None) -> tuple[float, Any]:
    """Seconds between two publications, and how much a count has grown; of a new process, since its start."""
    if after is None:
        return 0.0, lambda name: 0.0
    earlier = {"time": before["time"], **before["counts"]} if before else after["before"]
    if earlier is None:
        return 0.0, lambda name: 0.0
    counts = after["counts"]
    return after["time"] - earlier["time"], lambda name: (counts[name] or 0) - (earlier[name] or 0)


def _device_memory(memory: dict[str, int]) -> dict[str, int]:
    """Bytes by the documentation's names: what stays between graphs, and what a graph needs while it runs."""
    scratch = memory.get("temporaries", 0)
    return {"tensors": memory["total"] - scratch, "model_shared_scratchpad": scratch}


def _loaded_model(number: int, graph: dict[str, Any], core: int) -> Group:
    used = {"neuron_device": graph["device_bytes"]}
    return {
        "name": str(graph["source"]),
        "uuid": str(graph["graph"]),
        "model_id": number,
        "subgraphs": {
            "sg_00": {
                "memory_used_bytes": used,
                "neuroncore_index": core,
                "neuron_device_index": core // 2,
            }
        },
    }
