"""Who does not look at the page pays nothing for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = """
import sys
from pathlib import Path
from tests.contract.conftest import serving
from tests.contract.page import Visitor, visitor

def loaded():
    names = ("jinja2", "windtunnel_local.ui.app", "windtunnel_local.ui.site", "windtunnel.reports", "rich")
    return [name for name in names if name in sys.modules]

with serving(Path(sys.argv[1])) as backend:
    backend.client("s3").create_bucket(Bucket="out")
    sagemaker = backend.client("sagemaker")
    backend.run()
    sagemaker.list_training_jobs()
    print(loaded())
    Visitor(backend).ask("/ui/jobs")
    print("jinja2" in sys.modules, "windtunnel.reports.modelled" in sys.modules)
    page = visitor(backend)
    page.ask("/ui/jobs")
    before = set(sys.modules)
    print("windtunnel_local.cluster" in before, "yaml" in before)
    print(page.ask("/ui/clusters").status, page.ask("/ui/clusters/none").status)
    runs = ("docker", "requests", "windtunnel_local.cluster.nodes", "windtunnel_local.cluster.fleet")
    print([name for name in runs if name in sys.modules and name not in before])
"""


def test_a_server_that_nobody_looks_at_loads_nothing_of_it(tmp_path: Path) -> None:
    """A whole job later no template, no chart, no report is imported; with the first request they are.

    Clusters come with their own page; what runs them never does.
    """
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(tmp_path / "home")],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'sdk'}:{ROOT / 'local_backend'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["[]", "True False", "False False", "200 404", "[]"]
