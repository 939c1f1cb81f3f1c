"""How torch_xla sees a simulated NeuronCore; `hooks.table` puts it there.

world                world size, ordinals and device kind
transfer             tensors between device and host
memory               failing as the device does when something does not fit its memory
memory_by_use        what lies there: parameters, gradients, the optimizer's state
memory_messages      what is said then
malloc               memory that the process keeps between steps
stochastic_rounding  fp32 results that become bf16
auto_cast            fp32 inputs of products that the compiler casts
eager                operations one by one
dynamo               torch.compile: collectives between compiled graphs, never inside one
framework_names      torch_xla's names as the job's framework_version has them
older_transformers   the process group, where a newer transformers stands in for a pinned one
strided_views        views made with `as_strided`
in_place             shapes of what optimizers change in place
lookups              indices of embeddings that lie outside of the table
upsampling           the gradient of nearest-neighbour upsampling
neuron_operations    operations that torch_neuronx brings along, such as RmsNorm
nki                  kernels that scripts define, which are refused when they are launched
flash_attention      Neuron's own kernels of it, which NxD Core and optimum-neuron launch
nxd_core             what these two import and find nowhere else
"""
