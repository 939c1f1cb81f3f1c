"""How torch_xla sees a simulated NeuronCore; `hooks.table` puts it there.

world                world size, ordinals and device kind
transfer             tensors between device and host
memory               device memory, and the error when something does not fit
memory_by_use        what uses it: parameters, gradients, the optimizer's state
memory_messages      the texts of memory errors
malloc               host memory that the process keeps between steps
stochastic_rounding  fp32 results that become bf16
auto_cast            fp32 inputs of products that the compiler casts
eager                eager debug mode: operations compiled and run one by one
dynamo               torch.compile: collectives between compiled graphs, never inside one
framework_names      torch_xla's names as the job's framework_version has them
older_transformers   the process group, where a newer transformers stands in for a pinned one
strided_views        views made with `as_strided`
in_place             result shapes of optimizers' in-place operations, without torch's slow way
lookups              indices of embeddings that lie outside of the table
upsampling           the gradient of nearest-neighbour upsampling
neuron_operations    operations that torch_neuronx brings along, such as RmsNorm
nki                  kernels that scripts define, which are refused when they are launched
flash_attention      Neuron's flash attention kernels, which NxD Core and optimum-neuron launch
nxd_core             modules that these two import and that are not installed
"""
