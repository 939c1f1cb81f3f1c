"""Build the image of a cluster's nodes, and the training image below it, unless they are current. Prints progress."""

import os
import sys

from windtunnel_local.cluster.image import ensure_cluster_image
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import from_environment


def main() -> None:
    """Build the image unless it is current."""
    try:
        status = ensure_cluster_image(from_environment(os.environ), _say)
    except WindtunnelError as error:
        sys.exit(f"error: {error}")
    _say(f"{status.image}: current")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
