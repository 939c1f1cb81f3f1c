"""Why a job failed, out of what the toolkit, the launcher and the script have said."""

from __future__ import annotations

import pytest

from windtunnel.reports.failure import Raised, cause, each_once, in_short, raised

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
LABEL = Raised("KeyError: 'label'", "reviews/data.py:17", "__getitem__")
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
        (
            'AlgorithmError: x:\nExitCode 1\nErrorMessage ""\nCommand "y"\nOutOfMemory: z',
            "AlgorithmError: x: ExitCode 1",
        ),
        ("AlgorithmError: Exit Code: 3\nmore", "AlgorithmError: Exit Code: 3"),
        ("", ""),
        (
            'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "KeyError: 1", exit code: 1',
            "KeyError: 1",
        ),
    ],
)
def test_a_reason_in_a_line(reason: str, short: str) -> None:
    """What the script raised, without the toolkit's words; else the first line."""
    assert in_short(reason) == short


def test_where_it_was_raised() -> None:
    """The last frame in the user's own files; neither the launcher's traceback nor a peer's counts."""
    assert raised([*SCRIPT, *LAUNCHER], REASON) == LABEL
    assert raised([*PEER, *SCRIPT, *LAUNCHER], REASON) == LABEL
    assert raised([*SCRIPT, *PEER], "") == LABEL


def test_a_script_that_is_no_python() -> None:
    """Python then prints no traceback: the script was never run. Of equal ones one is shown."""
    unread = [
        '  File "/opt/ml/code/train.py", line 43',
        "    def f(a, a):",
        "           ^",
        "SyntaxError: duplicate",
    ]
    assert raised([*unread, *PEER, *LAUNCHER], REASON) == Raised("SyntaxError: duplicate", "train.py:43")
    assert cause([f"[rank0]: {line}" for line in unread], "") == "train.py:43: SyntaxError: duplicate"
    assert each_once(["start", *unread * 2]) == ["start", *unread]
    imported = [*SCRIPT[:-1], *unread]  # by a script that is
    assert raised(imported, "") == Raised("SyntaxError: duplicate", "train.py:43")
    assert each_once(imported) == imported


@pytest.mark.parametrize("escape", ["\x1b", r"\x1b"])
def test_marks_of_rays_processes_are_left_out(escape: str) -> None:
    """With their colours, which a FailureReason has written out."""
    mark, end = f"{escape}[36m(RayTrainWorker pid=363, ip=10.0.0.1){escape}[0m ", f"{escape}[0m"
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/ml/code/a.py", line 3, in f',
        "    x",
        "KeyError: 1",
    ]
    again = f"{escape}[32m [repeated 3x across cluster] (Ray deduplicates logs.){end}"
    assert raised([f"{mark}{line}{again}" for line in lines], "") == Raised("KeyError: 1", "a.py:3", "f")
    reason = f'AlgorithmError: ExecuteUserScriptError:\nErrorMessage "{mark}KeyError: 1{again}"\nCommand "x"'
    assert in_short(reason) == "KeyError: 1"


def test_marks_of_ranks_are_left_out() -> None:
    """As torch and MPI put them before each line."""
    for mark in ("[rank1]: ", "[1,mpirank:0,algo-1]<stderr>:", "[algo-2] ", "[algo-2] [rank1]: "):
        assert raised([f"{mark}{line}" for line in SCRIPT], REASON) == LABEL


@pytest.mark.parametrize(
    "words",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
@pytest.mark.parametrize(
    ("file", "at"),
    [
        ("/opt/ml/code/train.py", ("train.py:9", "f")),
        ("/usr/lib/x.py", ("reviews/data.py:17", "__getitem__")),
    ],
)
def test_of_a_chain_the_last_counts(words: str, file: str, at: tuple[str, str]) -> None:
    """What was raised while another exception was handled; where the user's own line is in either."""
    last = ["", words, "", SCRIPT[1], f'  File "{file}", line 9, in f', "    raise", "ValueError: no column"]
    assert raised([*SCRIPT, *last], "") == Raised("ValueError: no column", *at)


ACCOUNT = (
    "neuron_sim: ChildProcessError: rank 1 exited with code 1 at reviews/data.py:17 in __getitem__ "
    "(KeyError: 'label'); rank 0 waited in all_reduce at train.py:33"
)


def test_the_cause_in_a_line() -> None:
    """Where, who, what: the rank is the launcher's to know, and only of what it names."""
    there = "reviews/data.py:17 in __getitem__"
    assert cause([*SCRIPT, *LAUNCHER], REASON) == f"{there}: KeyError: 'label'"
    assert cause([*PEER, *SCRIPT, ACCOUNT, *LAUNCHER], REASON) == f"{there} (rank 1): KeyError: 'label'"
    assert cause([*SCRIPT, ACCOUNT.replace("KeyError", "OSError")], REASON) == f"{there}: KeyError: 'label'"
    own = [*SCRIPT[:-1], "my.own.TooFewError: 3", ACCOUNT.replace("KeyError: 'label'", "TooFewError: 3")]
    assert cause(own, "").endswith(" (rank 1): my.own.TooFewError: 3")


def test_without_a_traceback_the_launchers_account_is_the_cause() -> None:
    """A script that exits, or is killed; of several hosts with the host before it."""
    told = "rank 0 exited with code 2 at train.py:9 in main (SystemExit: 2, train.py: error: no); rank 1 had ended"
    for mark in ("", "[algo-2] "):
        assert cause(["usage: train.py", f"{mark}neuron_sim: ChildProcessError: {told}"], "") == told
    assert cause(["usage: train.py"], REASON) == ""


def test_an_error_of_a_loaders_worker_process_is_where_it_was_raised() -> None:
    """torch raises it again in the main process, with the worker's traceback behind it."""
    again = [
        "Traceback (most recent call last):",
        '  File "/opt/ml/code/train.py", line 50, in <module>',
        "    for batch in loader:",
        "KeyError: Caught KeyError in DataLoader worker process 0.",
        "Original Traceback (most recent call last):",
        *SCRIPT[6:],
    ]
    assert raised(again, "") == LABEL


def test_a_thread_ends_no_script_but_for_the_one_that_reads_ahead() -> None:
    """torch_xla ends the loop where MpDeviceLoader's thread ends."""
    value = Raised("RuntimeError: another core has ended", "train.py:33", "main")
    assert raised(["Exception in thread Thread-3 (send):", *SCRIPT[1:], *PEER], "") == value
    assert raised(["Exception in thread Thread-1 (_loader_worker):", *SCRIPT[1:], *PEER], "") == LABEL


def test_a_frame_may_have_lost_its_indentation() -> None:
    """The toolkit strips what it reads at once."""
    assert raised([line.strip() if "data.py" in line else line for line in SCRIPT], "") == LABEL


@pytest.mark.parametrize("stripped", [(7,), (8,), (7, 8), (3, 5, 7, 8)])
def test_code_and_marks_may_have_lost_theirs(stripped: tuple[int, ...]) -> None:
    """They are not what was raised."""
    log = [line.strip() if at in stripped else line for at, line in enumerate(SCRIPT)]
    assert raised(log, "") == LABEL


def test_frames_without_code_end_in_what_was_raised() -> None:
    """Those of frozen modules, whose code nobody has; and of a SyntaxError, whose code may be at the margin."""
    frame = '  File "/opt/ml/code/train.py", line 2'
    missing = [
        SCRIPT[1],
        f"{frame}, in <module>",
        "os.environ[name]",
        '  File "<frozen os>", line 679, in __getitem__',
    ]
    assert raised([*missing, "lib.Gone: x"], "") == Raised("lib.Gone: x", "train.py:2")
    syntax = "SyntaxError: invalid syntax"
    assert raised([frame, "def f(:", "^", syntax], "") == Raised(syntax, "train.py:2")


def test_equal_tracebacks_are_shown_once() -> None:
    """With what follows them alike; the last stays. What differs, and what stands between, stays too."""
    more = ["  rank 0: all_reduce at train.py:88", "On trn1 this hangs."]
    ranks = [*SCRIPT, *more, "epoch=1", *SCRIPT[1:], *more, *PEER]
    assert each_once(ranks) == [SCRIPT[0], "epoch=1", *SCRIPT[1:], *more, *PEER]
    hosts = [f"[algo-{host}] {line}" for host in (1, 2) for line in SCRIPT[1:]]
    assert each_once(hosts) == hosts[len(SCRIPT) - 1 :]
    assert each_once(["start", *SCRIPT[1:] * 3]) == ["start", *SCRIPT[1:]]


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
