"""Our torchrun looks to a script, and to the toolkit, like torch's own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest
import sagemaker_training
import torch
from conftest import LAUNCHER, NEW_LAUNCHER, SCRIPTS
from forked import FLAGS
from sagemaker_pytorch_container import training


def test_launches_of_this_suite_are_forked(torchrun):
    """Or it would take three times as long, and nobody would know why."""
    assert "a new process after all" not in torchrun("ends.py", "exit", "0", workers=1).output


def test_the_script_sees_what_a_fresh_interpreter_would_show_it(torchrun):
    """sys.path[0], __main__ and the order of its end. The rest is in test_beginning.py."""
    said = torchrun("ends.py", "as-main").said
    # At its end, the interpreter first waits for threads, then runs exit handlers; with success here.
    assert [entry["last"] for entry in said if "last" in entry] == ["thread", "exit handler"] * 2
    said = [entry for entry in said if "last" not in entry]
    assert len(said) == 2
    for entry in said:
        assert (entry["path"], entry["main"]) == ("scripts", "as-main")


FINALIZING = """
import weakref
import torch
import torch_xla
kept = torch.nn.Module()
weakref.finalize(kept, lambda: print("at the end", torch.ops.of_a_test.seven()))
library = torch.library.Library("of_a_test", "DEF")
library.define("seven() -> int")
library.impl("seven", lambda: 7, "CompositeExplicitAutograd")
"""


def test_what_a_script_does_at_its_end_finds_torchs_operators(torchrun, tmp_path):
    """The process takes none back, which would be most of its work; the script's own finalizers run."""
    script = tmp_path / "finalizing.py"
    script.write_text(FINALIZING)
    assert "at the end 7" in torchrun(str(script), workers=1).output


def test_an_exception_shows_the_scripts_own_traceback_and_fails(torchrun):
    """The traceback begins in the script, the exit code is torchrun's 1, and torch logs the worker in one line."""
    launch = torchrun("ends.py", "raise", check=False)
    assert launch.code == 1
    assert "ValueError: the reason of rank 1" in launch.output
    assert re.search(r"rank 1 exited with code 1 at ends.py:\d+ \(ValueError: the reason", launch.output)
    traceback = launch.output[launch.output.index("Traceback (most recent call last)") :]
    assert "ends.py" in traceback.splitlines()[1]
    assert "neuron_sim" not in traceback[: traceback.index("ValueError")]
    assert "exitcode  : 1" in launch.output
    # As on AWS, where torch's workers are programs. Of forked ones it would log a traceback through itself.
    (logged,) = [
        line for line in launch.output.splitlines() if re.match(r"[EW]\d{4} .*/(multiprocessing|spawn)", line)
    ]
    assert "failed (exitcode: 1) local_rank: 1" in logged


@pytest.mark.parametrize("launcher", [NEW_LAUNCHER, LAUNCHER])
def test_a_gpu_is_missed_in_torchs_own_words(torchrun, launcher):
    """Not in those for a fork, which no script under torchrun is: its author would look for one."""
    launch = torchrun("ends.py", "cuda", check=False, launcher=launcher)
    assert re.search("Found no NVIDIA driver|not compiled with CUDA", launch.output)
    assert "forked subprocess" not in launch.output


@pytest.mark.parametrize(
    ("how", "printed", "words"),
    [
        (
            ["message"],
            "\nleft with a message\n",
            r"code 1 at ends.py:\d+ \(SystemExit: left with a message\)",
        ),
        (["exit", "3"], "exitcode  : 3 ", r"code 3 at ends.py:\d+ \(SystemExit: 3\)"),
        (
            ["argparse"],
            "exitcode  : 2 ",
            r"code 2 at ends.py:\d+ \(SystemExit: 2, ends.py: error: unrecognized arguments: argparse\)",
        ),
        (
            ["die"],
            "Signal 9 (SIGKILL)",
            r"signal SIGKILL \(9\)(.* in \w+ at .*)?; no process was ended for memory",
        ),
    ],
)
def test_a_failure_without_an_exception_is_the_first_that_the_toolkit_takes(torchrun, how, printed, words):
    """Its ErrorMessage, which FailureReason shows, begins with a line that names one of Python's errors. Whatever the
    code, torchrun's is 1, and names it; a message is printed.
    """
    launch = torchrun("ends.py", *how, check=False)
    assert launch.code == 1 and printed in launch.output
    lines = launch.output.splitlines()
    first = next(line for line in lines if any(name in line for name in sagemaker_training._PYTHON_ERRORS_))
    assert re.match(rf"neuron_sim: ChildProcessError: ranks? [01] exited with {words}", first), first


def test_settings_that_are_refused_are_named_to_the_toolkit(torchrun):
    """Without a traceback, in one line: what was given and what is valid."""
    refused = torchrun(
        "ends.py", WINDTUNNEL_INSTANCE_TYPE="ml.trn2.3xlarge", NEURON_LOGICAL_NC_CONFIG="1", check=False
    )
    assert refused.code == 1 and "Traceback" not in refused.output
    first = next(
        line
        for line in refused.output.splitlines()
        if any(name in line for name in sagemaker_training._PYTHON_ERRORS_)
    )
    assert first == (
        "neuron_sim: RuntimeError: NEURON_LOGICAL_NC_CONFIG='1' is not simulated: a logical core of ml.trn2.3xlarge"
        " is 2 physical here. Unset it, or set it to 2."
    )


def test_a_rank_that_ends_early_is_named_instead_of_waited_for(torchrun):
    """A rank that left with success, and never took part in a collective, is no reason to wait for ever."""
    launch = torchrun("ends.py", "leave-early", check=False)
    assert launch.code == 1
    assert re.search(
        r"rank 1 ended: its script has run to its end; rank 0 waited in all_reduce at ends.py:\d+",
        launch.output,
    )


def test_a_rank_that_ends_early_closes_its_connections(torchrun):
    """As a program does: who waits for it over the host's network fails at once, and not after half an hour."""
    launch = torchrun("ends.py", "leave-gloo", check=False, timeout_s=60)
    assert launch.code == 1
    # Closed or reset, as gloo noticed it.
    closed = r"rank 0 exited with code 1 at ends.py:\d+ \(\w+: .*Connection (closed|reset)"
    assert re.search(closed, launch.output)


def test_different_shapes_on_different_ranks_are_refused_with_both_lines(torchrun):
    """Each rank's call is shown with its place in the script."""
    launch = torchrun("ends.py", "mismatch", check=False)
    assert launch.code == 1
    assert "called different collectives" in launch.output
    assert "float32[2]" in launch.output and "float32[3]" in launch.output and "at ends.py:" in launch.output


def test_sigterm_reaches_the_script(tmp_path):
    """A stop lets a script save its state: its own handler runs in every worker."""
    environment = {**os.environ, "SAY_TO": str(tmp_path / "said")}
    command = [*LAUNCHER, "--nnodes", "1", "--nproc_per_node", "2", str(SCRIPTS / "ends.py"), "sigterm"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as launcher:
        deadline = time.monotonic() + 300
        while not all((tmp_path / f"said.{rank}").exists() for rank in (0, 1)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        launcher.send_signal(signal.SIGTERM)
        launcher.wait(120)
    for rank in (0, 1):
        said = (tmp_path / f"said.{rank}").read_text()
        assert '"signal": 15' in said
        assert '"left": true' in said, "torch's agent has killed it"


def test_a_traceback_is_logged_line_by_line(tmp_path):
    """The interpreter has nothing to write in single characters, which the toolkit would log as lines."""
    script = tmp_path / "fails.py"
    script.write_text("def fail(x):\n    return (x + 1) / (x - x) + sum([x])\n\n\nfail(3)\n")
    done = subprocess.run([sys.executable, "-u", str(script)], capture_output=True, text=True, check=False)
    assert "(x - x)" in done.stderr and "^" not in done.stderr


@pytest.mark.parametrize("how", ["--no-python", "NEURON_SIM_PLAIN_TORCHRUN"])
def test_what_is_not_to_be_forked_goes_to_torchs_own_launcher(how, tmp_path):
    """--no-python starts any program, as torch's torchrun does; the variable rules the fork out for scripts."""
    script = tmp_path / "plain.py"
    script.write_text("import sys\nprint('plain', 1 + 1, 'torch' in sys.modules)\n")
    program = ["--no-python", sys.executable, str(script)] if how == "--no-python" else [str(script)]
    done = subprocess.run(
        [*LAUNCHER, "--nproc_per_node", "1", *program],
        env={**os.environ, "NEURON_SIM_PLAIN_TORCHRUN": "0" if how == "--no-python" else "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert "plain 2 False" in done.stdout


def test_the_toolkit_knows_torchs_version_and_has_not_imported_it():
    """SM_DLC_TORCH_VERSION is what the toolkit would find, by a function that takes the place of its own."""
    assert callable(training._set_torch_version_environment)
    code = (
        "import os, sys; from neuron_sim.launcher.train import set_torch_version; set_torch_version();"
        "print(os.environ['SM_DLC_TORCH_VERSION'], 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [torch.__version__, "False"]


def test_compilers_are_imported_when_they_are_used(torchrun):
    """torch_xla's own import leaves them out; whoever takes something of them finds them as they are."""
    (entry,) = torchrun("compilers.py", workers=1).said
    assert entry["at first"] == []
    assert entry["exported"] == "func.func @main"
    assert entry["names"] == ["StableHLOGraphModule", "min_cut_rematerialization_partition"]
    assert entry["recurrent"] == [2, 3, 4]
    assert entry["functions"] == ["torch_xla.stablehlo", "torch._functorch.aot_autograd"]


def test_a_library_that_asks_for_its_rank_when_imported_is_told_it(torchrun, tmp_path):
    """transformers' TrainingArguments make the group of processes so. What does not ask is imported once for all."""
    library = tmp_path / "site-packages" / "library"
    library.mkdir(parents=True)
    asked = "import os\nfrom library import shared\nRANK = os.environ.get('RANK')\n"
    files = {
        "__init__": "def __getattr__(name):\n    import importlib\n"
        "    return importlib.import_module(f'library.{name}')\n",
        "shared": "import os\nPROCESS = os.getpid()\n",
        "asking": asked,
        "above": "try:\n    from library import asking\nexcept Exception:\n    asking = None\n",
    }
    for name, text in files.items():
        (library / f"{name}.py").write_text(text)
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\nfrom library import above, asking, shared\nfrom transformers import TrainingArguments\n"
        f"sys.path.append({str(SCRIPTS)!r})\nimport os\nimport torch\nfrom saying import say\n"
        "import torch_xla\n"
        "say(ranks=[asking.RANK, above.asking.RANK], shared=shared.PROCESS != os.getpid(),"
        " group=torch.distributed.get_rank())\n"
    )
    folder = str(library.parent)
    for rank, entry in enumerate(torchrun(str(script), PYTHONPATH=folder).said):
        assert entry["ranks"] == [str(rank)] * 2
        assert entry["shared"] and entry["group"] == rank


def test_what_is_imported_in_the_workers_is_whole_there(torchrun, tmp_path):
    """A package has what it had imported of itself before, and no bare `except:` keeps the launcher's rank."""
    library = tmp_path / "site-packages" / "library"
    library.mkdir(parents=True)
    files = {
        "__init__": "from library.before import VALUE\nimport os\nRANK = os.environ.get('RANK')\n",
        "before": "import library\nVALUE = 1\ndef rank():\n    return library.RANK\n",
    }
    for name, text in files.items():
        (library / f"{name}.py").write_text(text)
    swallowing = library.parent / "swallowing"
    swallowing.mkdir()
    (swallowing / "__init__.py").write_text("")
    (swallowing / "asking.py").write_text(
        "import os\ntry:\n    R = os.environ['RANK']\nexcept:\n    R = None\n"
    )
    (library.parent / "above.py").write_text("from swallowing import asking\n")
    script = tmp_path / "train.py"
    script.write_text(
        "import library, above\nfrom swallowing import asking\n"
        f"import sys\nsys.path.append({str(SCRIPTS)!r})\nimport torch_xla\nfrom saying import say\n"
        "say(ranks=[library.RANK, library.before.rank(), asking.R, above.asking.R])\n"
    )
    folder = str(library.parent)
    for rank, entry in enumerate(torchrun(str(script), PYTHONPATH=folder).said):
        assert entry["ranks"] == [str(rank)] * 4


def test_crowded_workers_have_a_processor_each_and_scripts_see_all(torchrun):
    """Spread evenly; what Python counts is what the container has. XLA_FLAGS of the user's, here those of `forked`, win
    over what the launcher would choose for so many, and the rest is added.
    """
    processors = sorted(os.sched_getaffinity(0))[:2]
    workers = 4 * len(processors)
    os.sched_setaffinity(0, processors)
    try:
        said = torchrun("seen.py", workers=workers).said
    finally:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    assert [entry["place"] for entry in said] == [
        [processors[rank % len(processors)]] for rank in range(workers)
    ]
    for entry in said:
        assert entry["processors"] == processors
        flags = entry["xla_flags"].split()
        assert [flag for flag in flags if "optimization_level" in flag] == [FLAGS.split()[0]]
        assert "--xla_cpu_use_fusion_emitters=false" in flags
