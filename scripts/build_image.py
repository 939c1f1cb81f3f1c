"""Build an image that only the tests need, unless it is current: `python scripts/build_image.py test | cluster`.

test: the training image with pytest in it, for tests/container. cluster: that of a cluster's nodes, and the training
image below it. Prints the image's tag; progress goes to stderr.
"""

import os
import sys

from windtunnel_local.cluster.image import ensure_cluster_image
from windtunnel_local.runner.docker import build_image, docker_settings
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import from_environment


def main(kind: str) -> None:
    """Build the image."""
    try:
        settings = from_environment(os.environ)
        if kind == "cluster":
            status = ensure_cluster_image(settings, _progress)
        else:
            status = build_image(docker_settings(settings), _progress, "test")
    except WindtunnelError as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(f"{status.image}\n")


def _progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1])
