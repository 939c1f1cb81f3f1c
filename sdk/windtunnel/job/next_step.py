"""Advice about a failed job, from a table: the first entry whose pattern is found counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from windtunnel.porting.checkpointing import FOR_A_LIBRARY
from windtunnel.reports.failure import memory_advice
from windtunnel.request.checks import SDK_PREFIX
from windtunnel.session.training_service import LOCAL_ACCOUNT

_LESS_MEMORY = (
    "Hold weights once while they load (low_cpu_mem_usage=True of from_pretrained, mmap=True of torch.load), use fewer "
    "data-loader workers, a smaller batch or a larger instance type."
)
"""Follows the advice about the limit that the local backend itself sets."""
_FOR_MEMORY = ("OutOfMemory", "because memory was full")
"""Words of the backend, AWS's toolkit and Windtunnel's launcher about a process that was killed for lack of memory."""


def next_step(reason: str, description: Mapping[str, Any] | None = None, cause: str = "") -> str:
    """The advice for a FailureReason.

    ``description``: the job's, for its channels and hyperparameters; ``cause``: what its log adds to the reason.
    """
    text = f"{reason}\n{cause}"
    for pattern, step in _STEPS.items():
        if found := re.search(pattern, text):
            return step if isinstance(step, str) else step(found, description or {})
    if reason.startswith("AlgorithmError"):
        return "the script failed: correct what the log's last lines show, and run it again."
    here = f":{LOCAL_ACCOUNT}:" in (description or {}).get("TrainingJobArn", f":{LOCAL_ACCOUNT}:")
    doctor = "; `windtunnel doctor` checks this machine" if here else ""
    return f"correct what the reason names, and run it again{doctor}."


def _memory(found: re.Match[str], _: Mapping[str, Any]) -> str:
    needed = "needed" if found[0] in _FOR_MEMORY else "was killed, in most cases because it needed"
    advice = (memory_advice(found.string), _LESS_MEMORY)
    return f"the job {needed} more memory than its host has. {' '.join(filter(None, advice))}"


def _no_channel(found: re.Match[str], description: Mapping[str, Any]) -> str:
    name = found[1].lower()
    has = ", ".join(channel["ChannelName"] for channel in description.get("InputDataConfig", ()))
    return (
        f"this job has no channel {name}; it has: {has or 'none'}. Give it that one: --channel {name}=PATH, or "
        f"fit({{{name!r}: PATH}})."
    )


def _no_module(found: re.Match[str], _: Mapping[str, Any]) -> str:
    package = found[1].partition(".")[0]
    if package in ("torch", "torch_xla"):
        return (
            f"the image's {package} has no {found[1]}: the script is for another version of it. The log's first lines "
            "say which one this is; `windtunnel check SCRIPT` names what came after the names that it knows."
        )
    if told := re.search(r"Windtunnel: ([\w.]+ is not in the image\. .*)", found.string):
        return told[1]  # by the image itself, which knows AWS's packages
    hidden = f" If its folder has no __init__.py, add one: an installed package {package} is found before it."
    return (
        f"{found[1]!r} is not in the image. If it is a package, name it in a requirements.txt in --source-dir "
        "(source_dir=): it is installed before the script starts. If it is a file of yours, put it there too."
        f"{hidden if package != found[1] else ''}"
    )


def _arguments(_: re.Match[str], description: Mapping[str, Any]) -> str:
    sent = [name for name in description.get("HyperParameters", {}) if not name.startswith(SDK_PREFIX)]
    return (
        "the script's own argparse refused its arguments. They are made from the job's hyperparameters: "
        f"{', '.join(f'--{name}' for name in sent) or 'none'}. Name these as add_argument in the script "
        "does. With Hydra they are name=value: `windtunnel check` says what to write."
    )


_STEPS: Mapping[str, str | Callable[[re.Match[str], Mapping[str, Any]], str]] = {
    "because this machine's memory was full": (
        "other programs had filled this machine's memory. End some, or run fewer jobs at once "
        "(WINDTUNNEL_MAX_MEMORY_GIB), and run the job again. Fewer cores (local_cores=1) need less "
        "memory."
    ),
    "|".join(_FOR_MEMORY): _memory,
    "RESOURCE_EXHAUSTED: Failed to allocate": (
        lambda found, _: f"the job does not fit a core's memory. {memory_advice(found.string)}".strip()
    ),
    "no process was ended for memory": (
        "a process of the job was killed by the script itself, or by a program that watches it; not "
        "because of memory."
    ),
    "Killed by SIGKILL, though not for its memory limit": (
        "something killed the job's container, as the reason says: run it again. If the machine had no memory "
        "left, end other programs, or rehearse fewer cores (local_cores=1)."
    ),
    r"SIGKILL|\b[Ee]xit ?[Cc]ode:? (?:137|-9)\b": _memory,
    r"module 'torch_xla[\w.]*' has no attribute '|cannot import name '\w+' from 'torch_xla": (
        "torch_xla has no such name in this framework_version. docs/reference/names.md says which "
        "versions have it, and what replaces it. For names that torch_xla 2.7 removed, use world_size(), "
        "global_ordinal() and local_ordinal() of torch_xla.runtime, or framework_version='2.6'."
    ),
    r"Windtunnel: (pip cannot connect to .*)": lambda found, _: found[1],
    "InstallRequirementsError": (
        "pip could not install requirements.txt: its messages are in the log. Name versions that have "
        "wheels for the image's Python (`windtunnel image contents` lists what is in the image), or "
        "leave those lines out."
    ),
    r"device type at start of device string: neuron\b": (
        'the device "neuron" belongs to native PyTorch (TorchNeuron, a beta for trn2 and trn3), which is '
        "not simulated. On trn1, and up to PyTorch 2.9, use torch_xla.device()."
    ),
    r"`fused=True` requires all the params": (
        "the xla device has no fused optimizer. transformers 4.54 and newer choose one for their "
        'Trainer: pass optim="adamw_torch" (--optim adamw_torch), and fused=False to an optimizer of '
        "your own."
    ),
    "Attempted to access the data pointer on an invalid python storage": (
        "something, such as save_pretrained, reads the memory of a tensor that is on the device: after "
        'training, call model.to("cpu") before it.'
    ),
    "SyncBatchNorm expected input tensor to be on GPU": (
        "SyncBatchNorm is for GPUs: leave convert_sync_batchnorm out. BatchNorm takes its statistics "
        "from the samples of each core alone. If a core has few of them, use a larger batch, or a norm "
        "without such statistics (GroupNorm)."
    ),
    "PackedSequence is not supported|tensor has a non-zero number of elements, but its data is not allocated yet": (
        "something reads the memory of a tensor that is on the device; torch's RNN, LSTM and GRU do so "
        "with packed sequences. Leave pack_padded_sequence out, give them the padded batch, all of one "
        "length, and mask the outputs of the padding."
    ),
    "SparseAdam does not support dense gradients|arguments from the 'SparseXLA' backend": (
        "the device has neither sparse gradients nor sparse tensors: leave sparse=True out of "
        "embeddings, use Adam instead of SparseAdam, and give the device a dense tensor, "
        "x.to_dense().to(device)."
    ),
    r"floating point types of different precisions in .*\bf64\[": (
        "a tensor of doubles (numpy's default) meets a tensor of fp32: call .float() on it. On trn1 "
        "torch_xla makes all doubles fp32; on XLA's CPU they stay doubles."
    ),
    "module 'torch' has no attribute 'xla'|XLA currently does not support use_reentrant==False": (
        "torch's gradient checkpointing asks for torch.xla, which does not exist. Call "
        "torch_xla.utils.checkpoint.checkpoint (use_reentrant=True) instead. If a library calls it, "
        f"write, {FOR_A_LIBRARY}"
    ),
    r"'MpDeviceLoader(?:Wrapper)?' object has no attribute '(\w+)'": (
        lambda found, _: (
            f"torch_xla's loader has no {found[1]}: use the DataLoader that you gave it, or that you gave "
            "accelerator.prepare(). If accelerator.save_state() asks, write, behind prepare(), "
            f"loader.{found[1]} = loader.dataloader.{found[1]}, and save with safe_serialization=False: load_state() "
            "cannot load the other form to the device."
        )
    ),
    "optimum-neuron-cache/branch/": (
        "after its last step optimum-neuron asks the model hub whether graphs may be stored there, and the hub "
        "did not answer: pass skip_cache_push=True to NeuronTrainingArguments (--skip_cache_push True)."
    ),
    r"AttributeError: TPU\b": (
        "newer versions of accelerate have no DistributedType.TPU: use DistributedType.XLA instead."
    ),
    "No supported gpu backend found|`XLAAccelerator` can not run": (
        "Lightning uses no NeuronCore by itself: `windtunnel check SCRIPT` says what does."
    ),
    "XLA device type not an accelerator": (
        "XLA's device has no random generators: use torch.Generator(device=\"cpu\"). timm's ModelEmaV3 "
        "makes one for its model's device: use ModelEmaV2."
    ),
    "The model and the optimizer parameters are not on the same device": (
        "the optimizer was made before the model moved to the device. sentence-transformers uses the CPU "
        'if it finds no GPU: write SentenceTransformer(NAME, device="xla").'
    ),
    "Attempting to deserialize object on a CUDA device": (
        'the checkpoint was saved on a GPU, and trn1 has none: write torch.load(PATH, map_location="cpu").'
    ),
    # torch's errors for `.cuda()` and for the process group "nccl" without a GPU, or the script's own assertion.
    r"no NVIDIA driver|not compiled with CUDA|no GPUs found|assert torch\.cuda\.is_available": (
        "the script asks for CUDA, and trn1 has no GPU: `windtunnel check SCRIPT` names the lines, and "
        "with --diff prints the edits (docs/how_to/port_a_script.md)."
    ),
    "environment variable (?:RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT) expected": (
        "the script was started without torchrun, which sets this variable: leave out "
        '--no-torch-distributed, or give distribution={"torch_distributed": {"enabled": True}}.'
    ),
    r"AwsCrtError: AWS_IO_SOCKET_CLOSED": (
        "awscrt uses TLS for every S3 endpoint, but the local S3 has no TLS: for a job here leave awscrt "
        "(boto3[crt]) out of requirements.txt. boto3 and NxD Core's checkpoints also work without it."
    ),
    r"(\w+) requires NumPy [\d.]+ or newer, found ([\d.]+)": (
        lambda found, _: (
            f"requirements.txt has brought a numpy for which the image's {found[1]} was not built: also "
            f"name a {found[1]} there that fits numpy {found[2]}. If pandas then fails, do the same for "
            "it."
        )
    ),
    "NoCredentialsError|Unable to locate credentials": (
        "the script uses AWS, but a job has no keys here by default. "
        'environment={"WINDTUNNEL_AWS_IN_JOBS": "1"} (--env WINDTUNNEL_AWS_IN_JOBS=1) gives it keys of '
        "its role for the local S3. Services that the backend does not have then answer with an error."
    ),
    r"KeyError: 'SM_CHANNEL_(\w+)'": _no_channel,
    r"No module named '([\w.]+)'(?!(?s:.*)\n *(?!ModuleNotFound)\w*Error: )": _no_module,
    r"error: (argument [^:\n]*: invalid (?:[\w<>.]+ value|choice): '[^'\n]*'(?: \(choose from [^)\n]*\))?)": (
        lambda found, _: (
            f"the script's argparse cannot read a value: {found[1]}. Give that hyperparameter one that "
            "add_argument in the script takes."
        )
    ),
    r"SystemExit: 2, .*error: |error: (?:unrecognized arguments|the following arguments |argument )": _arguments,
}
