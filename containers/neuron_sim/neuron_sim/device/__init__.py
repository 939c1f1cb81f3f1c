"""How torch_xla sees a simulated NeuronCore.

activation   makes this process a core: called through torch_xla's own Neuron hook
world        world size, ordinals and device kind, at the level of `_XLAC._xla_*`
collectives  the same for collectives, so that all Python layers above stay genuine
functional   the collectives that torch_xla has as kernels of `_c10d_functional`
transfer     tensors between device and host
memory       what lies in a core's memory (memory_parts), and failing as the device does (memory_words)
spawning     `xmp.spawn` and `torch_xla.launch`: each process they start is a core
dynamo       torch.compile: collectives between compiled graphs, never inside one
old_names    names that torch_xla had up to 2.6
refusals     what is not simulated, refused by name
"""
