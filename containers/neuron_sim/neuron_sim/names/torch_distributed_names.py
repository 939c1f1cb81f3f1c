"""Names of torch.distributed with the backend `xla`, as torch_xla 2.9's ProcessGroupXla has them."""

from __future__ import annotations

from neuron_sim.names.name import Name, group

_DIST = "torch.distributed"
_FUNCTIONAL = "torch.distributed._functional_collectives"

NONE_IN_TORCH_XLA = "torch_xla's process group has none either: NotImplementedError."
NO_OBJECTS = "torch sends objects as tensors of the host, which torch_xla refuses: use xm.mesh_reduce."

NAMES: list[Name] = [
    *group(
        _DIST,
        "init_process_group destroy_process_group new_group get_rank get_world_size all_reduce all_gather "
        "all_gather_into_tensor broadcast reduce reduce_scatter reduce_scatter_tensor send recv",
    ),
    *group(_DIST, "all_to_all all_to_all_single gather", (2, 1)),
    *group(_DIST, "barrier", note="does nothing, as in torch_xla: use xm.rendezvous"),
    *group(_DIST, "isend irecv"),
    *group(_DIST, "all_gather_object broadcast_object_list", refused=NO_OBJECTS),
    *group(_DIST, "scatter", (2, 6)),
    *group(_DIST, "monitored_barrier all_reduce_coalesced", refused=NONE_IN_TORCH_XLA),
    *group(
        _FUNCTIONAL,
        "all_reduce all_gather_tensor reduce_scatter_tensor all_to_all_single broadcast",
        (2, 1),
        note="also between the graphs of torch.compile(backend='openxla')",
    ),
]
