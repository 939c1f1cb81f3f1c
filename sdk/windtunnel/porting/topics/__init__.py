"""What is looked for in a script, each topic in a file of its own. A new one is a file here, and its place in `TOPICS`.

backends             backends of the process group: for GPUs, for the host
batches              which core gets which batches, and whether their shapes stay
cuda_only            what of torch works on CUDA, but not on XLA's device
data_without_loader  data that a loop draws for itself: the same on all cores
device               CUDA's device, which is not there, and torch_xla's, which nothing names
distributions        torch.distributions, which read the values of their arguments
first_weights        first weights, which each process draws for itself
gpu_functions        functions of torch.cuda, which find no GPU
host_reads           values of the device that the host reads in each step, or for each batch that is evaluated
libraries            libraries and arguments that need a GPU
lightning            Lightning's Trainer and Fabric, which know no NeuronCore
logs                 lines of the script's own log that are lost
model_paths          paths of saved models: SageMaker keeps two folders of a container
native_pytorch       native PyTorch on Trainium: the device "neuron", which is not simulated
not_simulated        what of torch_xla a rehearsal refuses: SPMD, kernels for TPUs
older_names          names that torch_xla no longer has in the framework version, or torch in any
optimizers           optimizers made too soon; gradients that are not exchanged, or clipped too soon
pieces               pieces of split tensors, which are different on trn1
precision            CUDA's autocast and GradScaler
processes            the process group, the wrapper of the model, and who starts the processes
saves                files that every rank writes over the others'
shapes               shapes that change from batch to batch
shared_files         files that all processes of an instance make at once
shares               sums of a core's share of the data, divided by the number of all samples
slow_optimizers      optimizers of torch that need the host in each step
some_ranks           calls that wait for all processes, where only some make them
spawns               what xmp.spawn refuses: a number of processes, a device in use
splits               data that each core splits by random numbers of its own
step_ends            steps that nothing ends: MpDeviceLoader ends one with each batch
tensor_types         torch.cuda.FloatTensor and its like
ties                 tied weights, which become separate ones on the device
"""

from __future__ import annotations

from windtunnel.porting.topics import (
    backends,
    batches,
    cuda_only,
    data_without_loader,
    device,
    distributions,
    first_weights,
    gpu_functions,
    host_reads,
    libraries,
    lightning,
    logs,
    model_paths,
    native_pytorch,
    not_simulated,
    older_names,
    optimizers,
    pieces,
    precision,
    processes,
    saves,
    shapes,
    shared_files,
    shares,
    slow_optimizers,
    some_ranks,
    spawns,
    splits,
    step_ends,
    tensor_types,
    ties,
)

TOPICS = (
    device.uses_of_cuda,
    gpu_functions.of_gpus,
    tensor_types.of_cuda,
    device.unused_device,
    lightning.without_neuron,
    native_pytorch.of_native_pytorch,
    not_simulated.of_kernels,
    cuda_only.cuda_only,
    libraries.of_gpus,
    libraries.of_older_torch_xla,
    older_names.gone,
    older_names.gone_from_torch,
    backends.of_groups,
    processes.groups,
    spawns.unsupported_numbers,
    spawns.used_too_soon,
    first_weights.unequal_weights,
    precision.mixed_precision,
    step_ends.ends_of_steps,
    batches.same_data,
    data_without_loader.same_draws,
    splits.split_by_chance,
    batches.last_batches,
    shares.of_all_samples,
    shapes.of_lengths,
    shapes.of_libraries,
    shapes.of_sentences,
    shapes.of_growth,
    shapes.of_places,
    shapes.of_pieces,
    shapes.packed,
    shapes.of_values,
    shapes.of_chance,
    pieces.of_sizes,
    optimizers.early_optimizers,
    optimizers.models_that_leave,
    ties.untied,
    optimizers.no_exchange,
    optimizers.early_clips,
    slow_optimizers.by_the_host,
    host_reads.host_reads,
    host_reads.reads_of_evaluations,
    distributions.checked,
    some_ranks.lone_collectives,
    saves.saves,
    model_paths.lost,
    saves.safetensors_of_the_device,
    shared_files.made_at_once,
    logs.unheard,
)
"""Called in this order; the findings are sorted by line afterwards. SPMD (`not_simulated.of_spmd`) is not among them:
`program` looks for it before these, as it decides how many processes there are.
"""
