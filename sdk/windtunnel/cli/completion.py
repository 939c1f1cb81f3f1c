"""``windtunnel completion``: a script with which a shell completes commands and options."""

from __future__ import annotations

import argparse
from typing import Any

_EPILOG = """\
bash, in ~/.bashrc:              eval "$(windtunnel completion bash)"
zsh, in ~/.zshrc:                eval "$(windtunnel completion zsh)"     (behind compinit)
fish:                            windtunnel completion fish >~/.config/fish/completions/windtunnel.fish

Completing starts no process: the script knows this version's commands and options.
"""


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "completion",
        help="print a script that lets your shell complete commands and options",
        description="Print a script that lets a shell complete commands and options.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(func=_completion)


def _completion(arguments: argparse.Namespace) -> None:
    import shtab

    print(shtab.complete(arguments.parser, arguments.shell))
