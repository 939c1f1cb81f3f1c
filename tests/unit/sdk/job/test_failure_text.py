"""What a failed job shows: the script's own last words, and the step that helps."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.job.next_step import next_step
from windtunnel.job.outcome import failed, script_tail
from windtunnel.porting.checkpointing import FOR_A_LIBRARY

LOG = [
    "2026-01-01 sagemaker-training-toolkit INFO     Invoking user script",
    "Training Env:",
    "Invoking script with the following command:",
    "",
    "torchrun --nnodes 1 --nproc_per_node 2 train.py",
    "step 1",
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "ValueError: wrong",
    "W0101 12:00 5 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 7 closing signal SIGTERM",
    "Traceback (most recent call last):",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "2026-01-01 sagemaker-training-toolkit ERROR    Reporting training FAILURE",
    "ExitCode 1",
]


def test_the_tail_ends_with_the_scripts_error() -> None:
    """Not with what torchrun and the toolkit repeat of it."""
    assert script_tail(LOG, 3) == LOG[6:9]


def test_the_toolkits_notes_while_the_script_starts_do_not_end_it() -> None:
    """Without torchrun they come behind the command: what the script says after them is still its own."""
    notes = [
        "2026-01-01 sagemaker-training-toolkit INFO     Exceptions not imported for SageMaker Debugger as it "
        "is not installed.",
        "2026-01-01 sagemaker-training-toolkit INFO     Exceptions not imported for SageMaker TF as "
        "Tensorflow is not installed.",
    ]
    log = [*LOG[:4], "/opt/venv/bin/python3 -- train.py", "", *notes, *LOG[6:9], LOG[12]]
    assert script_tail(log, 3) == LOG[6:9]


def test_what_is_not_the_scripts_takes_none_of_its_places() -> None:
    """The command, blank lines, torchrun's note, the simulator's and the cache's; and how torch ends the others."""
    banner = "W1125 21:27:34.158000 28 torch/distributed/run.py:803] "
    beside = [
        "Windtunnel: 2 of the 2 NeuronCores of ml.trn1.2xlarge, simulated.",
        *(f"{banner}{text}" for text in ("", "*****", "Setting OMP_NUM_THREADS to be 1 in default")),
        "2026-11-25 21:27:40.000581:  31  INFO ||NEURON_CACHE||: Compile cache path: /var/tmp/neuron-compile-cache",
        "Compiler status PASS",
    ]
    ends = [
        "W1125 21:27:44 28 torch/multiprocessing/spawn.py:174] Terminating process 33 via signal SIGTERM",
        "neuron_sim: ChildProcessError: rank 0 exited with code 1; rank 1 had ended",
    ]
    for end in ends:
        assert script_tail([*LOG[2:5], *beside, *LOG[5:9], end, "more of it", *LOG[12:]], 20) == LOG[5:9]
    # torch's own frames in the script's traceback are no end of it.
    frame = '  File "/opt/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 357, in wrapper'
    assert script_tail([*LOG[2:7], frame, *LOG[8:]], 20) == [*LOG[5:7], frame, LOG[8]]


def test_the_tail_has_an_equal_traceback_once() -> None:
    """Of all ranks that fail alike."""
    assert script_tail([*LOG[:9], *LOG[6:9], *LOG[9:]], 20) == LOG[5:9]


def test_a_failed_job_says_why_in_its_first_line_and_once() -> None:
    """The FailureReason is whole in the error, and printed without what the log's last lines show."""
    log = [*LOG[:7], '  File "/opt/ml/code/train.py", line 3, in main', *LOG[8:]]
    reason = (
        'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "ValueError: wrong\n Traceback"'
    )
    error = failed("j", {"FailureReason": reason}, log, "here", 20)
    assert str(error).splitlines()[:2] == [
        "Training job j failed: train.py:3 in main: ValueError: wrong",
        "  Reason: AlgorithmError: ExecuteUserScriptError: ExitCode 1",
    ]
    assert str(error).count("ValueError: wrong") == 2
    assert error.reason == reason
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    assert (again.cause, str(again)) == (error.cause, str(error))


def test_without_a_script_the_tail_is_the_end_of_the_log() -> None:
    """A job that fails before its script starts still shows why."""
    early = [
        LOG[0],
        "2026-01-01 sagemaker-training-toolkit ERROR    Reporting training FAILURE",
        "no entry point",
    ]
    assert script_tail(early, 2) == early[1:]


@given(lines=st.lists(st.sampled_from([*LOG, "", "another line"])), count=st.integers(1, 30))
def test_the_tail_is_never_longer_than_asked_and_never_empty_for_nothing(
    lines: list[str], count: int
) -> None:
    """Whatever the log looks like, what is shown comes from it, in order."""
    tail = script_tail(lines, count)
    assert len(tail) <= count
    assert bool(tail) == bool(lines)
    remaining = iter(lines)
    assert all(line in remaining for line in tail)


def test_a_job_that_was_ended_for_memory_says_so_first_and_what_to_do_once() -> None:
    """Also where neither the script nor a launcher has said anything."""
    said = "The memory limit of host algo-1 is 3 GiB, for all of its processes. Rehearse fewer cores."
    reason = f'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""\nCommand "x"\nOutOfMemory: {said}'
    text = str(failed("j", {"FailureReason": reason}, LOG[:6], "here", 20))
    assert text.startswith("Training job j failed: a process was ended because memory was full\n")
    assert text.count(said) == 1


def test_a_model_too_large_for_a_core_is_told_what_makes_it_fit() -> None:
    """Whole, where the error's own line is cut; and not with what the toolkit puts behind it."""
    words = (
        "RESOURCE_EXHAUSTED: Failed to allocate 20GB on ND 0:NC 0. To fit: bf16 (model.to(torch.bfloat16))."
    )
    reason = f'AlgorithmError: ExitCode 1 ErrorMessage "{words} E1126 18:16 failed'
    assert next_step(reason).endswith("a core's memory. To fit: bf16 (model.to(torch.bfloat16)).")


LOST = r"docs/reference/names\.md .*world_size\(\).*framework_version='2\.6'"
JOB = {
    "HyperParameters": {"learning_rate": '"0.1"', "sagemaker_program": '"train.py"'},
    "InputDataConfig": [{"ChannelName": "train"}, {"ChannelName": "val"}],
}


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (
            "KeyError: 'SM_CHANNEL_TRAINING'",
            "no channel training; it has: train, val. .*--channel training=PATH",
        ),
        (
            "awscrt.exceptions.AwsCrtError: AWS_IO_SOCKET_CLOSED: socket is closed.",
            "the local S3 has no TLS.* leave awscrt .*out of requirements.txt",
        ),
        (
            "ModuleNotFoundError: No module named 'albumentations'",
            "'albumentations' .*requirements.txt in --source",
        ),
        (
            "rank 0 exited with code 2 (SystemExit: 2, train.py: error: ambiguous option: --l could match --lr)",
            "job's hyperparameters: --learning_rate\\.",
        ),
        (
            "train.py: error: unrecognized arguments: --learning_rate 0.1",
            "job's hyperparameters: --learning_rate\\.",
        ),
        (
            "train.py: error: argument -e/--epochs: invalid int value: 'three'",
            "^the script's argparse cannot read a value: argument -e/--epochs: invalid int value: 'three'. "
            "Give that hyperparameter one that add_argument in the script takes.$",
        ),
        (
            "rank 0 exited with code 2 (SystemExit: 2, t.py: error: argument --opt: invalid choice: 'adm' "
            "(choose from 'adam', 'sgd')); rank 1 had ended",
            r"a value: argument --opt: invalid choice: 'adm' \(choose from 'adam', 'sgd'\)\. Give",
        ),
        ("train.py: error: unrecognized arguments: --lr", "With Hydra they are name=value"),
        ("environment variable RANK expected, but not set", "without torchrun.*--no-torch-distributed"),
        ("RuntimeError: Attempting to deserialize object on a CUDA device but", 'map_location="cpu"'),
        ("RuntimeError: `fused=True` requires all the params to be floating point", "optim="),
        (
            "RuntimeError: Attempted to access the data pointer on an invalid python storage.",
            r'model.to\("cpu"\)',
        ),
        (
            "ValueError: SyncBatchNorm expected input tensor to be on GPU or XPU",
            "leave convert_sync_batchnorm out",
        ),
        (
            "RuntimeError: PackedSequence is not supported. Use a regular tensor",
            "Leave pack_padded_sequence out",
        ),
        (
            "RuntimeError: The tensor has a non-zero number of elements, but its data is not allocated yet.",
            "Leave pack_padded_sequence out",
        ),
        (
            "RuntimeError: SparseAdam does not support dense gradients, please consider Adam instead",
            "Adam instead of SparseAdam",
        ),
        (
            "NotImplementedError: Could not run 'aten::add' with arguments from the 'SparseXLA' backend.",
            "leave sparse=True out",
        ),
        (
            "ValueError: during context [hlo verifier]: Seen floating point types of different precisions in "
            "%add.13 = f64[32,128]{1,0} add(%dot.8, %broadcast.12), but mixed precision is disallowed.",
            r"doubles .* call \.float\(\)",
        ),
        (
            "ImportError: pyarrow requires NumPy 2.0 or newer, found 1.25.2",
            r"requirements\.txt has brought a numpy .* name a pyarrow there that fits numpy 1\.25\.2",
        ),
        (
            "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
            r"\{\"WINDTUNNEL_AWS_IN_JOBS\": \"1\"\}.* keys of its role",
        ),
        (
            "AttributeError: 'MpDeviceLoaderWrapper' object has no attribute 'dataset'",
            r"has no dataset: use the DataLoader that you gave it, or that you gave accelerator\.prepare\(\)\. .*"
            r"save_state.* loader\.dataset = loader\.dataloader\.dataset.*safe_serialization=False",
        ),
        ("AttributeError: TPU", "DistributedType.XLA instead"),
        (
            "ModuleNotFoundError: No module named 'torch._six'",
            "^the image's torch has no torch._six: .* another version.*`windtunnel check SCRIPT` names",
        ),
        (
            "OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/aws-neuron/optimum-neuron-cache/"
            "branch/this-branch-does-not-exist-24feb75c: offline mode is enabled.",
            "skip_cache_push=True",
        ),
        (
            "AttributeError: module 'torch' has no attribute 'xla'",
            r"torch_xla\.utils\.checkpoint\.checkpoint",
        ),
        ("ValueError: XLA currently does not support use_reentrant==False", r'"use_reentrant": True'),
        (
            "lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!",
            "Lightning uses no NeuronCore by itself",
        ),
        (
            "MisconfigurationException: `XLAAccelerator` can not run on your system since the accelerator is not",
            "Lightning uses no NeuronCore by itself",
        ),
        ("RuntimeError: XLA device type not an accelerator.", 'Generator\\(device="cpu"\\).*ModelEmaV2'),
        (
            "ValueError: The model and the optimizer parameters are not on the same device, which probably means",
            'SentenceTransformer\\(NAME, device="xla"\\)',
        ),
        ("privateuseone device type at start of device string: neuron", "torch_xla.device()"),
        ("AttributeError: module 'torch_xla.core.xla_model' has no attribute 'xrt_world_size'", LOST),
        ("AttributeError: module 'torch_xla.runtime' has no attribute 'using_pjrt'", LOST),
        ("ImportError: cannot import name 'get_ordinal' from 'torch_xla.core.xla_model' (/x.py)", LOST),
        ("RuntimeError: Found no NVIDIA driver on your system. Please check that", "windtunnel check SCRIPT"),
        ("AssertionError: Torch not compiled with CUDA enabled", "windtunnel check SCRIPT"),
        ("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", "windtunnel check"),
        ('AssertionError: needs a GPU\nassert torch.cuda.is_available(), "a GPU"', "windtunnel check SCRIPT"),
        ("InstallRequirementsError:\nExitCode 1", "requirements.txt"),
        (
            'InstallRequirementsError:\nErrorMessage "Windtunnel: pip cannot connect to a.test. Use b.\n E"',
            r"^pip cannot connect to a\.test\. Use b\.$",
        ),
        (
            "Windtunnel: some.lib is not in the image. It is a. Put b there.\n"
            " ModuleNotFoundError: No module named 'some.lib'",
            r"^some\.lib is not in the image\. It is a\. Put b there\.$",
        ),
    ],
)
def test_the_step_is_exact_where_it_can_be(error: str, step: str) -> None:
    """Out of the reason or of the log's own line, and with what the job was given."""
    assert re.search(step, next_step(f"AlgorithmError: {error}", JOB))
    assert re.search(step, next_step("AlgorithmError: x", JOB, error))


def test_a_step_without_a_description_names_nothing_that_is_not_there() -> None:
    """A job without channels and hyperparameters."""
    assert "it has: none." in next_step("KeyError: 'SM_CHANNEL_TRAIN'")
    assert "hyperparameters: none." in next_step("t.py: error: the following arguments are required: --x", {})


def test_a_job_that_failed_on_aws_is_none_of_this_machines() -> None:
    """What checks this machine is not named."""
    arn = "arn:aws:sagemaker:us-east-1:{}:training-job/j"
    reason = "CapacityError: Unable to provision requested ML compute capacity."
    there, here = (
        next_step(reason, {"TrainingJobArn": arn.format(account)})
        for account in ("123456789012", "000000000000")
    )
    assert there == "correct what the reason names, and run it again."
    assert here == "correct what the reason names, and run it again; `windtunnel doctor` checks this machine."


def test_without_torchrun_argparse_is_known_by_its_last_line() -> None:
    """It raises nothing, and nobody else tells of it."""
    log = [
        *LOG[2:4],
        "/opt/venv/bin/python3 train.py",
        "usage: train.py",
        "train.py: error: argument --lr: no",
    ]
    reason = 'AlgorithmError: ExecuteUserScriptError:\nExitCode 2\nErrorMessage ""'
    error = failed("j", {"FailureReason": reason, **JOB}, log, "here", 20)
    assert str(error).startswith("Training job j failed: train.py: error: argument --lr: no\n")
    assert "--learning_rate" in error.next_step


def test_where_the_log_tells_nothing_the_first_line_has_the_reason() -> None:
    """The first line is all that a summary of tests shows."""
    reason = "ClientError: The Docker engine has no image mine:1. Pull it."
    text = str(failed("j", {"FailureReason": reason}, [], "here", 20))
    assert text.startswith(f"Training job j failed: {reason}\n  Last lines of its log:\n")


def test_a_failed_rehearsal_says_where_its_answer_is() -> None:
    """One that fails as it saves its model has told size and steps; nothing said so."""
    reason = "AlgorithmError: ExecuteUserScriptError:\nExitCode 1"
    job = {"FailureReason": reason}
    assert "windtunnel report j" in failed("j", job, LOG, "here", 5, rehearsed=True).next_step
    assert "windtunnel report" not in failed("j", job, LOG, "here", 5).next_step


def test_the_page_has_the_lines_that_the_step_names() -> None:
    """Of gradient checkpointing, in the section on transformers' Trainer."""
    page = (Path(__file__).resolve().parents[4] / "docs/how_to/port_a_script.md").read_text().splitlines()
    lines = FOR_A_LIBRARY.partition(": ")[2].removesuffix(".").split("; ")
    assert len(lines) == 3
    assert set(lines) <= set(page)


def test_a_module_that_was_lacking_and_was_not_the_end() -> None:
    """As where a package tries another one first."""
    lacking = " ModuleNotFoundError: No module named 'tensorflow'"
    reason = f'AlgorithmError: ExitCode 1\nErrorMessage "Traceback\n{lacking}\n Then:\n'
    assert "tensorflow" not in next_step(reason + " TypeError: Descriptors cannot be created directly.\n")
    assert "__init__.py" not in next_step(reason + lacking + "\n")
    own = "ModuleNotFoundError: No module named 'datasets.loader'"
    assert "folder has no __init__.py, add one: an installed package datasets is found before" in next_step(
        own
    )
    assert "tensorflow" in next_step(reason + lacking + "\n torch.distributed.elastic.ChildFailedError:\n")
