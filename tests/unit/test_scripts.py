"""scripts/ and the Makefile on machines that are not yet, or no longer, as they should be. No package is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKE_PYTHON = """#!/bin/sh
case "$*" in
-VV) echo "Python {version}" ;;
-V) echo "Python {version}" ;;
"-m venv "*)
    for venv in "$@"; do [ "$venv" != --clear ] || clear=yes; done
    [ -z "$clear" ] || rm -rf "$venv"
    mkdir -p "$venv/bin"
    cp "$0" "$venv/bin/python"
    printf '#!/bin/sh\\n[ "$1" != --version ] || echo "pip 1 from %s/lib/pip (python 3)"\\n' "$venv" >"$venv/bin/pip"
    cp "$venv/bin/pip" "$venv/bin/windtunnel"
    chmod +x "$venv/bin/pip" "$venv/bin/windtunnel" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout below a folder with a blank, with what the scripts read."""
    root = tmp_path / "my checkouts" / "windtunnel"
    shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "pyproject.toml", "containers/training/uv-env.sh"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    return root


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs that come before this machine's; they note that they were called."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("apt-get", "dockerd", "systemctl", "uv"):
        program(folder / name, f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n')
    return folder


def program(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def run(programs: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it with these programs in front of this machine's, in an environment of little else."""
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(programs), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def calls(programs: Path) -> str:
    """What was called of them."""
    noted = programs.parent / "calls"
    return noted.read_text() if noted.exists() else ""


def setup(checkout: Path, programs: Path, part: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """scripts/setup.sh PART."""
    return run(programs, checkout / "scripts" / "setup.sh", part, **variables)


def python(programs: Path, version: str) -> str:
    """A Python of that version, which makes environments."""
    return str(program(programs / f"python{version}", FAKE_PYTHON.format(version=version)))


def test_a_python_that_is_missing_is_called_missing(checkout: Path, programs: Path) -> None:
    """It was called too old."""
    done = setup(checkout, programs, "venv", PYTHON="python9.9")
    assert done.returncode == 1
    assert "python9.9 is missing" in done.stderr
    assert "too old" not in done.stderr


def test_an_environment_is_made_once(checkout: Path, programs: Path) -> None:
    """The second call leaves it alone."""
    given = python(programs, "3.11")
    assert setup(checkout, programs, "venv", PYTHON=given).returncode == 0
    (checkout / ".venv" / "mine").touch()
    second = setup(checkout, programs, "venv", PYTHON=given)
    assert "up to date" in second.stdout
    assert (checkout / ".venv" / "mine").exists()
    (checkout.parent / "link").symlink_to(checkout)
    assert "up to date" in setup(checkout.parent / "link", programs, "venv", PYTHON=given).stdout
    assert calls(programs).count("uv pip install") == 1


def test_what_an_interrupted_call_left_is_gone_on_with(checkout: Path, programs: Path) -> None:
    """Nothing that is installed is thrown away."""
    given = python(programs, "3.11")
    assert setup(checkout, programs, "venv", PYTHON=given).returncode == 0
    (checkout / ".venv" / ".stamp").unlink()
    (checkout / ".venv" / "mine").touch()
    assert setup(checkout, programs, "venv", PYTHON=given).returncode == 0
    assert (checkout / ".venv" / "mine").exists()


def test_an_environment_of_another_python_is_made_anew(checkout: Path, programs: Path) -> None:
    """`make ... PYTHON=python3.12` gave the old one's stamp the new one's name."""
    assert setup(checkout, programs, "venv", PYTHON=python(programs, "3.11")).returncode == 0
    assert setup(checkout, programs, "venv", PYTHON=python(programs, "3.12")).returncode == 0
    assert "3.12" in run(programs, checkout / ".venv/bin/python", "-VV").stdout


def test_an_environment_that_came_with_its_folder_is_made_anew(checkout: Path, programs: Path) -> None:
    """Its programs start the Python of the folder where it was made: tests would test that one's code."""
    given = python(programs, "3.11")
    assert setup(checkout, programs, "venv", PYTHON=given).returncode == 0
    moved = checkout.with_name("moved")
    shutil.copytree(checkout, moved)
    assert setup(moved, programs, "venv", PYTHON=given).returncode == 0
    assert f"from {moved}/.venv/" in run(programs, moved / ".venv/bin/pip", "--version").stdout


def test_an_environment_elsewhere_is_not_removed(checkout: Path, programs: Path, tmp_path: Path) -> None:
    """VENV=... may be anybody's folder."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    done = setup(checkout, programs, "venv", PYTHON=python(programs, "3.11"), VENV=str(tmp_path / "precious"))
    assert done.returncode == 1
    assert "precious" in done.stderr
    assert (tmp_path / "precious" / "file").exists()


def test_an_environment_that_is_a_link_is_not_removed(checkout: Path, programs: Path) -> None:
    """It may be another checkout's."""
    given = python(programs, "3.11")
    assert setup(checkout, programs, "venv", PYTHON=given).returncode == 0
    other = checkout.with_name("other")
    shutil.copytree(checkout, other, ignore=shutil.ignore_patterns(".venv"))
    (other / ".venv").symlink_to(checkout / ".venv")
    (checkout / ".venv" / "mine").touch()
    done = setup(other, programs, "venv", PYTHON=given)
    assert done.returncode == 1
    assert (checkout / ".venv" / "mine").exists()


def test_who_may_not_use_the_engine_is_told_so(checkout: Path, programs: Path) -> None:
    """An engine that runs was to be started, or installed, by a user who is not in its group."""
    program(programs / "id", "#!/bin/sh\necho 1000\n")
    program(checkout / ".venv/bin/python", "#!/bin/sh\nexit 1\n")
    program(
        checkout / ".venv/bin/windtunnel",
        '#!/bin/sh\n[ "$*" = "image status" ] && echo "this user may not" >&2\nexit 1\n',
    )
    done = setup(checkout, programs, "engine")
    assert done.returncode == 1
    assert "error: this user may not" in done.stderr
    assert not calls(programs)


@pytest.mark.parametrize("part", ["engine", "image", "cluster"])
def test_a_part_that_needs_the_environment_says_so(checkout: Path, programs: Path, part: str) -> None:
    """Without it no engine seemed to answer, and a second one was started."""
    done = setup(checkout, programs, part)
    assert done.returncode == 1
    assert "scripts/setup.sh venv" in done.stderr
    assert not calls(programs)


def test_a_package_that_apt_cannot_install_ends_the_script(checkout: Path, programs: Path) -> None:
    """`timed` takes errexit away: setup went on, and waited a minute for an engine that was not there."""
    program(programs / "apt-get", '#!/bin/sh\n[ "$1" = update ] || echo "E: Unable to fetch" >&2\nexit 100\n')
    program(programs / "id", "#!/bin/sh\necho 0\n")
    script = f'. "{checkout}/scripts/lib.sh"; part() {{ apt_install thing; echo went on; }}; timed Part part'
    done = run(programs, "bash", "-euc", script)
    assert done.returncode == 1
    assert "went on" not in done.stdout
    assert "Unable to fetch" in done.stderr
    assert "apt-get could not install thing" in done.stderr


def test_a_package_waits_for_another_apt(checkout: Path, programs: Path) -> None:
    """A machine that has just started updates itself, and holds the lock for a minute or two."""
    program(programs / "id", "#!/bin/sh\necho 0\n")
    assert run(programs, "bash", "-euc", f'. "{checkout}/scripts/lib.sh"; apt_install thing').returncode == 0
    assert "DPkg::Lock::Timeout=" in calls(programs)


def test_all_of_several_programs_must_be_there(checkout: Path, programs: Path) -> None:
    """`command -v a b` is content with one: Slurm was installed where there was its client alone."""
    found = run(programs, "bash", "-c", f'. "{checkout}/scripts/lib.sh"; have sh uv && ! have sh none-such')
    assert found.returncode == 0


def test_daemons_are_found_by_users_whose_path_has_none(checkout: Path, programs: Path) -> None:
    """Debian's users do not have /usr/sbin, where Docker's and Slurm's are."""
    path = run(programs, "bash", "-c", f'. "{checkout}/scripts/lib.sh"; echo "$PATH"').stdout
    assert "/usr/sbin" in path.strip().split(":")


def test_no_container_is_started_where_the_test_image_was_not_built(checkout: Path, programs: Path) -> None:
    """The engine's complaint of an image without a name hid what the build had said."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    called = checkout / "called"
    program(checkout / "scripts/setup.sh", "#!/bin/sh\n")
    program(checkout / "scripts/in_image.sh", f'#!/bin/sh\ntouch "{called}"\n')
    program(checkout / ".venv/bin/python", "#!/bin/sh\necho the build failed >&2\nexit 1\n")
    done = run(programs, "make", "-C", checkout, "container-tests")
    assert done.returncode
    assert not called.exists()


def test_an_image_that_cannot_be_built_is_a_message(programs: Path) -> None:
    """As of `windtunnel image build`: what is wrong, and no traceback."""
    paths = f"{ROOT / 'sdk'}:{ROOT / 'local_backend'}"
    script = ROOT / "scripts" / "build_image.py"
    done = run(programs, sys.executable, script, "cluster", PYTHONPATH=paths, DOCKER_HOST="unix:///nowhere")
    assert done.returncode == 1
    assert "error: Cannot reach Docker" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_source_distribution_has_what_its_makefile_calls() -> None:
    """It came with the Makefile and without scripts/."""
    (included,) = re.findall(r"targets\.sdist\]\ninclude = (\[.*\])", (ROOT / "pyproject.toml").read_text())
    assert {"/Makefile", "/scripts"} <= set(json.loads(included))
