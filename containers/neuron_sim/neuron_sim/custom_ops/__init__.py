"""Custom C++ operators: `torch_neuronx.xla_impl.custom_op`. On the device its GpSimd engine runs them, here the host.

build      a library from compute and shape sources
operators  its operators, on tensors of the device
include    the headers that sources find
"""
