"""`~/aws_neuron_venv_pytorch`: the virtual environment that AWS's scripts activate.

It sees the image's packages and commands; packages that the user installs come before them. Its pip is a copy of the
image's, started through `pip_command`. It is made once, in the home that all nodes share.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import venv
from importlib import metadata
from pathlib import Path

NAME = "aws_neuron_venv_pytorch"
_PIPS = ("pip", "pip3", f"pip{sys.version_info.major}.{sys.version_info.minor}")


def make(target: Path, image: Path) -> None:
    """Make the environment at ``target`` on top of the environment ``image``. Idempotent; 0.3 s.

    An incomplete environment, left by a process that was killed, is made anew.
    """
    done = target / ".made-by-windtunnel"
    if done.exists():
        return
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False, prompt=NAME).create(target)
    folder = f"python{sys.version_info.major}.{sys.version_info.minor}"
    theirs, ours = (place / "lib" / folder / "site-packages" for place in (image, target))
    # addsitedir instead of a plain path, so that the .pth files of the image are read too.
    (ours / "_image.pth").write_text(f"import site; site.addsitedir({str(theirs)!r})\n")
    for script in sorted((image / "bin").iterdir()):
        if script.name not in _PIPS:
            _retarget(script, target / "bin" / script.name, image, target)
    _copy_pip(theirs, ours)
    for name in _PIPS:
        command = target / "bin" / name
        command.write_text(
            f"#!{target}/bin/python\nimport runpy\n\nrunpy.run_module('pip', run_name='__main__')\n"
        )
        command.chmod(0o755)
    done.touch()


def _retarget(script: Path, copy: Path, image: Path, target: Path) -> None:
    """Copy a Python command of the image, to run with the new environment's Python."""
    if copy.exists() or script.is_symlink():
        return
    first, _, rest = script.read_bytes().partition(b"\n")
    if first.startswith(b"#!" + bytes(image / "bin" / "python")):
        copy.write_bytes(b"#!" + bytes(target / "bin" / "python") + b"\n" + rest)
        copy.chmod(0o755)


def _copy_pip(theirs: Path, ours: Path) -> None:
    shutil.copytree(theirs / "pip", ours / "pip", symlinks=True)
    information = f"pip-{metadata.version('pip')}.dist-info"
    shutil.copytree(theirs / information, ours / information)
    (ours / "pip" / "__main__.py").write_text(
        "from neuron_node.pip_command import main\n\nif __name__ == '__main__':\n    raise SystemExit(main())\n"
    )


def main(argv: list[str] | None = None) -> int:
    """Make the environment; `windtunnel-neuron-venv` makes it in the caller's home."""
    parser = argparse.ArgumentParser(
        prog="windtunnel-neuron-venv", description="Make ~/aws_neuron_venv_pytorch, unless it is there."
    )
    parser.add_argument("target", nargs="?", type=Path, default=Path.home() / NAME)
    given = parser.parse_args(argv)
    make(given.target.absolute(), Path(sys.prefix))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
