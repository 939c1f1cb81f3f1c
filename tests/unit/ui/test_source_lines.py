"""The script's line that a diagnostic names, out of the archive that the job ran."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import pytest

from tests.fakes.archive import archive
from tests.fakes.objects import FakeObjects
from windtunnel_local.ui.job.source_lines import Scripts

URI = "s3://code/sourcedir.tar.gz"
JOB: dict[str, Any] = {"HyperParameters": {"sagemaker_submit_directory": f'"{URI}"'}}


def packed(**files: str) -> io.BytesIO:
    """A tar.gz; in names, ``__`` is a slash."""
    members = ((name.replace("__", "/") + ".py", text.encode()) for name, text in files.items())
    return io.BytesIO(archive(*members))


@pytest.fixture
def objects(tmp_path: Any) -> FakeObjects:
    """A bucket."""
    return FakeObjects(tmp_path, "code")


TEXT = "".join(f"line {number}\n" for number in range(1, 21))


def test_a_line_and_some_around_it(objects: FakeObjects) -> None:
    """Three before and three behind, the one that is meant marked; fewer at the ends."""
    objects.put("code", "sourcedir.tar.gz", packed(train=TEXT, lib__train="other"))
    scripts = Scripts(objects)
    found = scripts.around(JOB, "train.py:10")
    assert [(line.number, line.text) for line in found] == [(n, f"line {n}") for n in range(7, 14)]
    assert [line.number for line in found if line.named] == [10]
    assert [line.number for line in scripts.around(JOB, "train.py:1")] == [1, 2, 3, 4]
    assert [line.number for line in scripts.around(JOB, "train.py:20")] == [17, 18, 19, 20]


def test_a_file_below_a_folder_is_found(objects: FakeObjects) -> None:
    """Diagnostics name the file alone; of two the one nearest to the top is taken."""
    objects.put("code", "sourcedir.tar.gz", packed(deep__er__model="far", pkg__model="near"))
    assert [line.text for line in Scripts(objects).around(JOB, "model.py:1")] == ["near"]


def test_a_new_archive_is_read_anew(objects: FakeObjects) -> None:
    """What is kept is of one archive, not of its address."""
    scripts = Scripts(objects)
    for text in ("one", "two"):
        objects.put("code", "sourcedir.tar.gz", packed(train=text))
        assert [line.text for line in scripts.around(JOB, "train.py:1")] == [text]


@pytest.mark.parametrize(
    "place", ["?", "train.py", "train.py:0", "train.py:99", "none.py:1", "../train.py:1", "train.py:-1", ""]
)
def test_where_there_is_no_such_line_there_is_none(objects: FakeObjects, place: str) -> None:
    """No error either: the diagnostic says what it says."""
    objects.put("code", "sourcedir.tar.gz", packed(train=TEXT))
    assert Scripts(objects).around(JOB, place) == []


def test_what_is_no_archive_has_no_lines(objects: FakeObjects) -> None:
    """Broken, missing, or elsewhere."""
    objects.put("code", "sourcedir.tar.gz", io.BytesIO(b"no archive"))
    scripts = Scripts(objects)
    for value in (f'"{URI}"', '"s3://code/none"', '"/opt/ml/code"', "3", "not json", "null", '"s3://"'):
        job = {"HyperParameters": {"sagemaker_submit_directory": value}}
        assert scripts.around(job, "train.py:1") == []
    assert scripts.around({}, "train.py:1") == []


def test_a_job_without_a_network_has_its_code_as_a_channel(objects: FakeObjects) -> None:
    """Its archive is where the channel is."""
    objects.put("code", "sourcedir.tar.gz", packed(train=TEXT))
    channel = {"ChannelName": "code", "DataSource": {"S3DataSource": {"S3Uri": URI}}}
    values = {"sagemaker_submit_directory": '"/opt/ml/input/data/code/sourcedir.tar.gz"'}
    job = {"HyperParameters": values, "InputDataConfig": [channel]}
    assert len(Scripts(objects).around(job, "train.py:5")) == 7


def test_what_is_kept_of_scripts_is_small(objects: FakeObjects) -> None:
    """A megabyte of short lines would be 20 as lines: 32 scripts are kept."""
    tracemalloc.start()
    try:
        scripts = Scripts(objects)
        for number in range(2):
            objects.put("code", "sourcedir.tar.gz", packed(train=f"{number}\n" + "ab\n" * 350_000))
            assert scripts.around(JOB, "train.py:2")[1].text == "ab"
        assert tracemalloc.get_traced_memory()[0] < 4 << 20
    finally:
        tracemalloc.stop()
