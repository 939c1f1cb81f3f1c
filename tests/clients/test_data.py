"""Programs that read and write data in S3 work unmodified in a shell after `windtunnel env`."""

from __future__ import annotations

import re
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


PRINTED = {
    "with_s3fs.py": "x,y\n1,2\n3,4\n",
    "with_pandas.py": "6",
    "with_awswrangler.py": "6",
    "with_smart_open.py": "hello",
    "with_datasets.py": "[2, 4]",
    "with_pyarrow.py": "[2, 4]",
}
# In one process, since most of them import pandas and pyarrow, which takes longer than all else.
_ALL = """
import runpy, sys
for program in sys.argv[1:]:
    print("of", program)
    runpy.run_path(program, run_name="__main__")
print("then")
from pyarrow import fs
print(fs.FileSystem.from_uri("s3://my-data")[0].get_file_info("my-data/a.csv").size)
try:
    fs.S3FileSystem().get_file_info("my-data/a.csv")
except OSError as error:
    print(error)
"""


def test_data_clients(place: Callable[[str], Place]) -> None:
    """The first writes what the others read; each writes, and reads that again.

    Why the page names the endpoint to pyarrow: `S3FileSystem()` passes the variable over, a URI does not.
    """
    code, output = place("data_clients").started("python", "-c", _ALL, *PRINTED).ended()
    printed, aborted, _ = output.partition(_ABORTED)
    assert code == (134 if aborted else 0), output[-3000:]
    before, _, behind = printed.partition("\nthen\n")
    for program, wanted in PRINTED.items():
        (own,) = re.findall(rf"^of {program}\n(.*?)(?=\nof |\Z)", before, re.MULTILINE | re.DOTALL)
        assert own.endswith(wanted), output[-3000:]
    size, _, refusal = behind.partition("\n")
    assert size == "12" and "AWS Error" in refusal, output[-3000:]
