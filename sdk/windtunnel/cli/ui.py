"""``windtunnel ui``: open the page of the local backend in the browser."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "ui",
        help="look at jobs in the browser",
        description="Open the page of the local backend, which is started if none runs. The address that is printed "
        "lets one browser in, once, within a minute; the browser stays let in for 12 hours.",
    )
    parser.add_argument("job", metavar="JOB", nargs="?", help="go to this job's page")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.set_defaults(func=_ui)


def _ui(arguments: argparse.Namespace) -> None:
    import webbrowser

    from windtunnel.session.page_token import page_url
    from windtunnel.session.resolve import shared_local_session

    session = shared_local_session()
    backend = session.backend
    running = backend.ensure()
    if arguments.job:
        session.service.describe_job(arguments.job)  # raises an error if there is none
    path = f"/ui/jobs/{quote(arguments.job, safe='')}" if arguments.job else "/ui/jobs"
    url = page_url(running, backend.credentials(), path)
    print(url, flush=True)
    if not arguments.no_browser and not webbrowser.open(url):
        print("No browser was found here: open this address in one on this machine, within a minute.")
