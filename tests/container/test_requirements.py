"""A script's requirements.txt in the image: what can be had is installed, what cannot is stood in for."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
from conftest import SITE

from neuron_sim.launcher.requirements import half_working

TOOLKIT = """
import sys
from sagemaker_training import modules
from neuron_sim import settings
from neuron_sim.launcher.requirements import with_stand_ins
with_stand_ins(modules.install_requirements)(sys.argv[1], capture_error=True)
print("older transformers:", settings.older_transformers())
"""
OWN = "windtunnel-some-requirement"


@pytest.fixture
def install(tmp_path, monkeypatch, uninstall):
    """Install a requirements.txt as a job would, from three wheels; the exit code and the log."""
    uninstall(OWN)
    for name, version in (("huggingface-hub", "1.31.0"), ("torch", "2.8.0")):
        wheel(tmp_path, name, version)
    wheel(tmp_path, OWN, "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    def run(text, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "requirements.txt").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", TOOLKIT, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (tmp_path / "requirements.txt").read_text() == text
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture(scope="module", autouse=True)
def whole() -> Iterator[None]:
    """What is installed fits together when all have installed something."""
    yield
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True)


def wheel(folder: Path, name: str, version: str, *needs: str) -> Path:
    """A distribution with an empty module of its name."""
    module = name.replace("-", "_")
    stem = f"{module}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as file:
        info = f"{stem}.dist-info"
        required = "".join(f"Requires-Dist: {need}\n" for need in needs)
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}"
        )
        file.writestr(f"{module}/__init__.py", "")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return folder / f"{stem}-py3-none-any.whl"


def there(made: Path) -> None:
    """Have a distribution as if it had been in the image."""
    with zipfile.ZipFile(made) as file:
        file.extractall(SITE)
        names = file.namelist()
    # By what is listed there `uninstall` removes it.
    record = next(name for name in names if name.endswith("/RECORD"))
    (SITE / record).write_text("".join(f"{name},,\n" for name in names))


def has(name: str) -> bool:
    """Whether a distribution is installed."""
    return any(metadata.distributions(name=name))


def test_what_cannot_be_had_is_stood_in_for_and_the_rest_is_installed(install):
    """The log names both versions, and what to set to fail instead. The compiler, which AWS's own samples ask for, is
    simulated: neither is it here, nor could it compile for what is here.
    """
    code, log = install(
        f"# ours\ntransformers[torch]==4.21.0  # why\nneuronx_cc==2.*  # the compiler\n{OWN}\n"
    )
    assert code == 0
    assert has(OWN)
    assert "what the image has" not in log
    assert f"==4.21.0 is left out; transformers {metadata.version('transformers')}, which is installed" in log
    assert "WINDTUNNEL_STRICT_REQUIREMENTS=1" in log
    assert "older transformers: transformers[torch]==4.21.0\n" in log
    assert "Windtunnel: neuronx_cc==2.* is left out: the compiler is simulated." in log
    # What is installed is compiled when it is imported: pip would compile all of a library, of which a job uses a part.
    found = subprocess.run(
        [sys.executable, "-c", f"import {OWN.replace('-', '_')} as own; print(own.__cached__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not [file for file in metadata.files(OWN) or () if file.suffix == ".pyc"]
    assert Path(found.stdout.strip()).exists()


def test_what_raises_when_it_is_used_is_said():
    """datasets imports, and gives no tensors: MpDeviceLoader's thread ends, and with it the epoch."""
    (said,) = half_working({"datasets": "2.16.1", "numpy": "2.4.6"}, {"datasets"})
    assert said.startswith("datasets 2.16.1 is for numpy below 2") and "datasets==2.21.0" in said
    assert not list(half_working({"datasets": "2.21.0", "numpy": "2.4.6"}, {"datasets"}))
    assert not list(half_working({"datasets": "2.16.1", "numpy": "1.26.4"}, {"datasets"}))
    assert not list(half_working({"datasets": "2.16.1", "numpy": "2.4.6"}, {"evaluate"}))


def test_what_breaks_the_image_all_the_same_is_said(install, tmp_path, uninstall):
    """Beside pins that were left out. Where none was: see below."""
    uninstall("windtunnel-needs-it")
    uninstall("windtunnel-needed")
    there(wheel(tmp_path, "windtunnel-needs-it", "1", "windtunnel-needed<2"))
    there(wheel(tmp_path, "windtunnel-needed", "1"))
    wheel(tmp_path, "windtunnel-needed", "2")
    wheel(tmp_path, OWN, "1", "windtunnel-needed>=2")
    said = "has brought breaks what the image has: windtunnel-needs-it 1 needs windtunnel-needed<2, not 2. An import"
    code, log = install(f"transformers==4.30.2\n{OWN}\n")
    assert code == 0
    assert "transformers==4.30.2 is left out" in log and said in log
    # From 4.26 on transformers makes the group on AWS too: a script that makes it again fails there.
    assert "older transformers: \n" in log


def test_a_pin_stays_where_leaving_it_out_mends_nothing(install, tmp_path, uninstall):
    """It may be what makes the rest fit, as an older pyarrow for an older numpy."""
    for name in ("windtunnel-needs-it", "windtunnel-needed", "windtunnel-beside"):
        uninstall(name)
        there(wheel(tmp_path, name, "1", *(["windtunnel-needed<2"] if name.endswith("needs-it") else [])))
    wheel(tmp_path, "windtunnel-needed", "2")
    wheel(tmp_path, "windtunnel-beside", "2")
    wheel(tmp_path, OWN, "1", "windtunnel-needed>=2")
    code, log = install(f"windtunnel-beside==2\n{OWN}\n")
    assert code == 0
    assert "is left out" not in log and "breaks what the image has: windtunnel-needs-it 1" in log
    assert metadata.version("windtunnel-beside") == "2"


@pytest.mark.parametrize("passes", [True, False])
def test_a_script_for_an_older_transformers_may_make_the_group_itself(torchrun, passes):
    """The one that stands in has made it when it was imported."""
    asked = {"NEURON_SIM_OLDER_TRANSFORMERS": "transformers==4.21.0"} if passes else {}
    launch = torchrun("grouped.py", check=False, **asked)
    assert (launch.code == 0) is passes
    assert ("initialize the default process group twice" in launch.output) is not passes
    assert [said["world"] for said in launch.said] == ([2, 2] if passes else [])


def test_pins_that_would_break_what_is_installed_are_stood_in_for(install, tmp_path):
    """pip could have them: transformers, or the simulator, could not run with them, and older datasets ask pyarrow for
    what is gone, without saying which they need. What needs torch comes in a version for the one that is there, as
    torchaudio, whose newest would bring a torch with which torch_xla cannot be imported.
    """
    before = metadata.version("torch")
    wheel(tmp_path, "datasets", "2.14.2")
    wheel(tmp_path, OWN, "1", f"torch=={before}")
    wheel(tmp_path, OWN, "2", "torch==2.8.0")
    pins = ("huggingface_hub==1.31.0", "torch==2.8.0", "datasets==2.14.2")
    code, log = install("\n".join((*pins, OWN)))
    assert code == 0, log
    for reason in (
        r"transformers \S+ needs huggingface-hub\S+, not 1\.31\.0",
        r"simulated NeuronCores are for torch \S+, not 2\.8\.0",
        rf"datasets 2\.14\.2 needs pyarrow<21, not {metadata.version('pyarrow')}",
    ):
        assert re.search(reason, log), log
    for pin in pins:
        assert f"{pin} is left out" in log
    assert (metadata.version(OWN), metadata.version("torch")) == ("1", before)


def test_what_leaving_out_does_not_help_fails_as_on_sagemaker(install):
    """With the toolkit's own error, and nothing installed."""
    code, log = install(f"transformers==4.21.0\nwindtunnel-nowhere\n{OWN}\n")
    assert (code, has(OWN)) == (1, False)
    assert "InstallRequirementsError" in log


@pytest.mark.parametrize(
    ("lines", "host"),
    [
        ("https://127.0.0.1:9/windtunnel_far-1-py3-none-any.whl", "127.0.0.1"),
        ("--extra-index-url https://localhost:9\nwindtunnel-far", "localhost"),
    ],
)
def test_a_host_that_pip_cannot_reach_is_named(install, lines, host):
    """First in FailureReason, without pip's retries. Other versions do not stand in where its file is asked for."""
    there = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "https://127.0.0.1:9/simple", "PIP_RETRIES": "1"}
    code, log = install(f"transformers==4.21.0\n{lines}\n", **there)
    assert code == 1
    reason = log.rpartition("InstallRequirementsError: ")[2]
    said = rf'ErrorMessage "Windtunnel: pip cannot connect to (127\.0\.0\.1 or )?{host}\. Use .*\n *ERROR: '
    assert re.search(said, reason), reason
    assert "Retrying" in log and "Retrying" not in reason
    assert "simulated NeuronCores need the version" not in log
    assert ("left out" in log) is ("index" in lines)


@pytest.mark.parametrize("ours", [{}, {"PIP_LOG": "/dev/stdout"}])
def test_a_host_is_not_named_where_pip_failed_for_another_reason(install, ours):
    """Nor is a log read that the job itself asks for: it may be a stream."""
    there = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "https://127.0.0.1:9/simple", "PIP_RETRIES": "0", **ours}
    code, log = install(f"{OWN}==1\n{OWN}==2\n", **there)
    assert (code, "Windtunnel: pip cannot connect" in log) == (1, False)
    assert "conflict" in log


def test_strict_requirements_are_installed_as_they_are_or_not_at_all(install):
    """By the setting; also the compiler."""
    code, log = install(f"neuronx-cc\ntransformers==4.21.0\n{OWN}\n", WINDTUNNEL_STRICT_REQUIREMENTS="1")
    assert (code, has(OWN)) == (1, False)
    assert "No matching distribution found for neuronx-cc" in log and "left out" not in log


@pytest.mark.parametrize(("need", "code"), [("torch-neuronx", 0), ("torch-neuronx>=99", 1)])
def test_a_package_of_another_index_does_not_replace_what_plays_the_device(install, tmp_path, need, code):
    """As NxD Core is installed from AWS's: its newer torch-neuronx stays there, and so does who cannot do without."""
    index = tmp_path / "index"
    for name, version, *needs in (
        (OWN, "2", need, "libneuronxla"),
        ("torch-neuronx", "99"),
        ("libneuronxla", "99"),
    ):
        page = index / name
        page.mkdir(parents=True)
        file = wheel(page, name, version, *needs).name
        (page / "index.html").write_text(f'<a href="{file}">{file}</a>')
    before = {name: metadata.version(name) for name in ("torch-neuronx", "libneuronxla")}
    text = f"--extra-index-url {index.as_uri()}\n{OWN}\n"
    got, log = install(text, PIP_NO_INDEX="0", PIP_INDEX_URL=index.as_uri(), PIP_FIND_LINKS="")
    assert (got, has(OWN)) == (code, code == 0), log
    assert before == {name: metadata.version(name) for name in before}
    assert ("simulated NeuronCores need the version of it that is here" in log) == (code == 1)


def test_what_pip_fetched_to_see_what_it_would_do_is_not_fetched_again(install, tmp_path):
    """From an index that, as PyPI, lets it be kept."""
    asked = []

    class Index(SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(tmp_path))

        def end_headers(self):
            self.send_header("Cache-Control", "max-age=600")
            super().end_headers()

        def log_message(self, *_):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever).start()
        (tmp_path / OWN).mkdir()
        newer = wheel(tmp_path / OWN, OWN, "2").name
        (tmp_path / OWN / "index.html").write_text(f'<a href="{newer}">{newer}</a>')
        there(tmp_path / f"{OWN.replace('-', '_')}-1-py3-none-any.whl")
        asking = {
            "PIP_NO_INDEX": "0",
            "PIP_FIND_LINKS": "",
            "PIP_INDEX_URL": f"http://127.0.0.1:{server.server_port}",
            "PIP_TRUSTED_HOST": "127.0.0.1",  # of others over http it keeps nothing
        }
        code, log = install(f"{OWN}==2\n", **asking)
        server.shutdown()
    assert (code, metadata.version(OWN)) == (0, "2"), log
    assert asked.count(f"/{OWN}/{newer}") == 1
