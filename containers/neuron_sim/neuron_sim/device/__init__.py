"""How torch_xla sees a simulated NeuronCore.

world        world size, ordinals and device kind, at the level of `_XLAC._xla_*`
collectives  the same for collectives, so that all Python layers above stay genuine
functional   the collectives that torch_xla has as kernels of `_c10d_functional`
transfer     tensors between device and host
memory       what lies in a core's memory (memory_by_use), and failing as the device does (memory_messages)
dynamo       torch.compile: collectives between compiled graphs, never inside one
framework_names  names that torch_xla has in the job's framework version
malloc       memory that the process keeps between steps
refusals     what is not simulated, refused by name
"""
