"""Simulated NeuronCores for torch_xla.

torch_xla looks for AWS's Neuron plug-in by the module names `libneuronxla` and
`torch_neuronx`; the modules of those names beside this package lead here.
XLA's CPU client does the arithmetic. This package adds what a lone CPU process
lacks: a world of cores with ordinals, collectives between them, the Neuron
device kind, counters of what ran, and the tools around it.

    topology      what an instance has: devices, cores, memory
    settings      the only reader of the environment
    activation    makes this process a core: called through torch_xla's own Neuron hook
    interconnect/ data between cores: shared memory in a host, gloo between hosts
    device/       how torch_xla sees a core: world, ordinals, collectives, refusals
    counters/     what ran, as JSON lines: graphs, steps, collectives, input waits
    diagnostics/  what Trainium would tell too late: recompilations, values read in the loop, CPU fallbacks
    launcher/     torchrun whose workers are forked from one warm process
    tools/        neuron-ls
"""

__version__ = "0.1.0"
