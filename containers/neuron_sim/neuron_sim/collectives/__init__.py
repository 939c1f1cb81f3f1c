"""The collectives of torch_xla, each in a file of its own; carried out by `interconnect`.

On trn1 a collective is part of the graph. Here it ends the pending graph: the inputs are
computed, combined on the host, and come back as new device data. The counters add the
parts up as the one step that trn1 would run.

A file has the functions by which torch_xla calls its collective: those of `_XLAC`, which
take groups of ranks, and a kernel of `_c10d_functional`, which takes the name of a process
group (`xm.all_reduce` of one tensor, `torch.distributed._functional_collectives`, functions
under torch.compile). A new collective is such a file, its data movement in
`interconnect.communicator`, and its lines in `hooks.table`.
What all have in common is in `operation`: agreement, counting, the checks of arguments.
"""
