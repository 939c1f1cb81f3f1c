"""Simulated NeuronCores for torch_xla.

torch_xla looks for AWS's Neuron plug-in by the module names `libneuronxla` and
`torch_neuronx`; the modules of those names beside this package lead here.
XLA's CPU client does the arithmetic. This package adds what a lone CPU process
lacks: a world of cores with ordinals, collectives between them, the Neuron
device kind, counters of what ran, and the tools around it.

    settings      what the container tells the simulator, out of the environment
    processes     processes as Linux knows them
    atomic_file   writes files that other processes read meanwhile
    cgroup        what the container may use
    topology      what an instance has: devices, cores, memory
    names/        every name that Trainium scripts use: supported, or refused with what to do instead
    hooks/        everything that is changed in torch and torch_xla, in one table
    device/       how torch_xla sees a core: world, memory, transfers, rounding
    collectives/  one file each: all_reduce, all_gather, ...
    interconnect/ data between cores: shared memory in a host, gloo between hosts
    compiler/     what stands where neuronx-cc and its cache stand
    custom_ops/   C++ operators of the script's own
    counters/     what ran, as JSON lines: graphs, steps, collectives, input waits
    diagnostics/  what to change before Trainium: recompilations, values read in the loop, CPU fallbacks
    runtime/      which process holds which core, and what it does there
    inference/    torch_neuronx.trace
    launcher/     torchrun whose workers are forked from one warm process
    serving/      models behind HTTP: the command `serve`
    tools/        neuron-ls, neuron-monitor, neuron-top, neuron_parallel_compile
    warm/         a container that is kept for the next job
"""

__version__ = "0.1.0"
