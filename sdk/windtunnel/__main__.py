"""Lets ``python -m windtunnel`` run the command ``windtunnel``."""

import sys

from windtunnel.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
