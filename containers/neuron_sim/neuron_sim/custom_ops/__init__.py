"""Custom C++ operators: `torch_neuronx.xla_impl.custom_op`. A real device's GpSimd engine runs them; here the host.

build      compiles a library from compute and shape sources
operators  runs its operators on tensors of the device
include    the headers that sources find
"""
