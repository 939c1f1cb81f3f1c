"""Build the training image with pytest in it, for tests/container. Prints its tag; progress goes to stderr."""

import os
import sys
from typing import TextIO

from windtunnel_local.runner.docker import build_image, docker_settings
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import from_environment


def main() -> None:
    """Build the image unless it is current."""
    try:
        settings = docker_settings(from_environment(os.environ))
        status = build_image(settings, lambda line: _say(sys.stderr, line), "test")
    except WindtunnelError as error:
        sys.exit(f"error: {error}")
    _say(sys.stdout, status.image)


def _say(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


if __name__ == "__main__":
    main()
