"""Why a job failed, out of what the toolkit, the launcher and the script have said."""

from __future__ import annotations

import pytest

from windtunnel_local.ui.job.failure import Raised, in_short, raised

SCRIPT = [
    "epoch=0 loss=0.7",
    "Traceback (most recent call last):",
    '  File "/opt/ml/code/train.py", line 42, in <module>',
    "    main()",
    '  File "/usr/lib/python3/site-packages/torch/utils/data/dataloader.py", line 732, in __next__',
    "    data = self._next_data()",
    '  File "/opt/ml/code/reviews/data.py", line 17, in __getitem__',
    '    return row["label"]',
    "           ~~~^^^^^^^^^",
    "KeyError: 'label'",
]
LAUNCHER = [
    "E1123 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1)",
    "Traceback (most recent call last):",
    '  File "/usr/local/bin/torchrun", line 8, in <module>',
    "    sys.exit(main())",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
]
PEER = [
    "Traceback (most recent call last):",
    '  File "/opt/ml/code/train.py", line 33, in main',
    "    xm.optimizer_step(optimizer)",
    "RuntimeError: another core has ended",
]
REASON = (
    "AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"KeyError: 'label'\n E1123 failed\"\n"
    'Command "torchrun train.py"'
)


@pytest.mark.parametrize(
    ("reason", "short"),
    [
        (REASON, "KeyError: 'label'"),
        (
            'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "raise ValueError(\n'
            ' ValueError: a banana"\nCommand "x"',
            "ValueError: a banana",
        ),
        ('AlgorithmError: x:\nErrorMessage "\n[rank1]: my.own.TooSmallError: 3"', "my.own.TooSmallError: 3"),
        ('AlgorithmError: x:\nErrorMessage "\n Segmentation fault"', "Segmentation fault"),
        ('AlgorithmError: x:\nErrorMessage ""\nCommand "y"', 'Command "y'),
        ("AlgorithmError: Exit Code: 3\nmore", "AlgorithmError: Exit Code: 3"),
        ("", ""),
    ],
)
def test_a_reason_in_a_line(reason: str, short: str) -> None:
    """What the script raised, without the toolkit's words; else the first line."""
    assert in_short(reason) == short


def test_where_it_was_raised() -> None:
    """The last frame in the user's own files; neither the launcher's traceback nor a peer's counts."""
    assert raised([*SCRIPT, *LAUNCHER], REASON) == Raised("KeyError: 'label'", "reviews/data.py:17")
    assert raised([*PEER, *SCRIPT, *LAUNCHER], REASON) == Raised("KeyError: 'label'", "reviews/data.py:17")
    assert raised([*SCRIPT, *PEER], "") == Raised("KeyError: 'label'", "reviews/data.py:17")


def test_marks_of_ranks_are_left_out() -> None:
    """As torch and MPI put them before each line."""
    for mark in ("[rank1]: ", "[1,mpirank:0,algo-1]<stderr>:"):
        assert raised([f"{mark}{line}" for line in SCRIPT], REASON) == Raised(
            "KeyError: 'label'", "reviews/data.py:17"
        )


@pytest.mark.parametrize(
    "words",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
@pytest.mark.parametrize(
    ("file", "place"), [("/opt/ml/code/train.py", "train.py:9"), ("/usr/lib/x.py", "reviews/data.py:17")]
)
def test_of_a_chain_the_last_counts(words: str, file: str, place: str) -> None:
    """What was raised while another exception was handled; where the user's own line is in either."""
    last = ["", words, "", SCRIPT[1], f'  File "{file}", line 9, in f', "    raise", "ValueError: no column"]
    assert raised([*SCRIPT, *last], "") == Raised("ValueError: no column", place)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        LAUNCHER,
        ["Traceback (most recent call last):"],
        ["Traceback (most recent call last):"] * 3,
        SCRIPT[:-1],
        ["[" * 5000, "\0", "Error: " * 10_000],
    ],
)
def test_other_logs_have_none(lines: list[str]) -> None:
    """Cut off, the launcher's alone, or no traceback at all."""
    assert raised(lines, REASON) is None
