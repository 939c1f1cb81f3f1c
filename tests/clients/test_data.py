"""Programs that read and write data in S3 work unmodified in a shell after `windtunnel env`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.places import Place

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
]  # packages are installed once, which takes minutes

# pyarrow now and then aborts when the interpreter ends, after the program's last line:
# https://github.com/apache/arrow/issues/34314.
_ABORTED = "terminate called without an active exception"


@pytest.fixture(scope="module")
def here(place: Callable[[str], Place]) -> Place:
    """One home, with the file that the first of the page's programs writes."""
    here = place("data_clients")
    assert here.run("python", "with_s3fs.py") == "x,y\n1,2\n3,4\n\n"
    return here


@pytest.mark.parametrize(
    ("program", "prints"),
    [
        ("with_pandas.py", "6"),
        ("with_awswrangler.py", "6"),
        ("with_smart_open.py", "hello"),
        ("with_datasets.py", "[2, 4]"),
        ("with_pyarrow.py", "[2, 4]"),
    ],
)
def test_a_data_client(here: Place, program: str, prints: str) -> None:
    """It reads what another has written, writes, and reads that again."""
    code, output = here.started("python", program).ended()
    printed, aborted, _ = output.partition(_ABORTED)
    assert code == (134 if aborted else 0), output[-3000:]
    assert printed.splitlines()[-1] == prints


def test_pyarrow_by_itself_asks_aws(here: Place) -> None:
    """Why the page names the endpoint: `S3FileSystem()` passes the variable over, a URI does not."""
    program = "from pyarrow import fs; {}.get_file_info('my-data/a.csv')"
    code, output = here.started("python", "-c", program.format("fs.S3FileSystem()")).ended()
    assert (code, "AWS Error" in output) == (1, True)
    here.run("python", "-c", program.format("fs.FileSystem.from_uri('s3://my-data')[0]"))
