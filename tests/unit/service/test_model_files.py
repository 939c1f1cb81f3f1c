"""What a container finds in /opt/ml/model."""

from __future__ import annotations

import gzip
import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.fakes.objects import FakeObjects
from windtunnel_local.service.data import listing
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.hosting import model_files
from windtunnel_local.service.hosting.model_files import provide_model


@pytest.fixture(params=["with filters", "without"])
def filters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python whose tarfile has filters; and one that has none, as Debian 12's."""
    if request.param == "without":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        plain = tarfile.TarFile.extract

        def extract(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
            plain(tar, member, path)

        monkeypatch.setattr(tarfile.TarFile, "extract", extract)


def test_a_model_of_many_objects_is_there_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind those that one page of a list has."""
    monkeypatch.setattr(listing, "_PAGE", 10)
    objects = FakeObjects(tmp_path / "objects", "models")
    for number in range(23):
        objects.put_text("models", f"llama/parts/{number}.bin", "w")
    source = {"S3Uri": "s3://models/llama/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    target = tmp_path / "model"
    target.mkdir()
    provide_model({"ModelDataSource": {"S3DataSource": source}}, target, objects, lambda: None)
    assert len(list((target / "parts").iterdir())) == 23


def archived(objects: FakeObjects, folder: Path, data: bytes) -> Path:
    """What a container gets of such a model.tar.gz. Raises ``InputError``."""
    objects.put("models", "model.tar.gz", BytesIO(data))
    target = folder / "model"
    target.mkdir()
    provide_model({"ModelDataUrl": "s3://models/model.tar.gz"}, target, objects, lambda: None)
    return target


def packed(*members: tarfile.TarInfo) -> bytes:
    """A tar.gz of members whose bytes are zeros."""
    data = BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as tar:
        for member in members:
            tar.addfile(member, BytesIO(bytes(member.size)))
    return data.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


def test_a_bomb_of_headers_is_bounded(tmp_path: Path) -> None:
    """A header that unpacks to gigabytes would be read into the server's memory whole."""
    data = gzip.compress(
        member("x", tarfile.GNUTYPE_LONGNAME, 1 << 40).tobuf(tarfile.GNU_FORMAT) + b"1" * (3 << 20), 1
    )
    with pytest.raises(InputError, match=r"model archive .* headers are larger"):
        archived(FakeObjects(tmp_path / "objects", "models"), tmp_path, data)


def test_files_without_number_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes room on the disk, also an empty one."""
    monkeypatch.setattr(model_files, "MAX_MEMBERS", 3)
    data = packed(*(member(f"f{number}") for number in range(4)))
    with pytest.raises(InputError, match="more than 3 members"):
        archived(FakeObjects(tmp_path / "objects", "models"), tmp_path, data)


@pytest.mark.usefixtures("filters")
def test_large_members_and_many_long_names_are_unpacked(tmp_path: Path) -> None:
    """What is bounded are headers alone. Owners and special bits stay behind."""
    names = [f"{'long' * 30}/{'name' * 30}-{number}" for number in range(300)]
    weights = member("weights", size=9 << 20)
    weights.mode, weights.uid = 0o4755, 4711
    data = packed(*(member(name) for name in names), weights)
    target = archived(FakeObjects(tmp_path / "objects", "models"), tmp_path, data)
    status = (target / "weights").stat()
    assert (status.st_size, status.st_uid) == (9 << 20, os.geteuid())
    assert status.st_mode & 0o7777 == 0o755
    assert all((target / name).is_file() for name in names)


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (member("../x"), "outside"),
        (member("/x/../../y"), "outside"),
        (member("l", tarfile.SYMTYPE, link="/etc"), "link"),
        (member("h", tarfile.LNKTYPE, link="../../x"), "outside|link"),
        (member("p", tarfile.FIFOTYPE), "special file"),
        (member("d", tarfile.BLKTYPE), "special file"),
    ],
)
def test_what_leads_out_is_refused(tmp_path: Path, odd: tarfile.TarInfo, reason: str) -> None:
    """Names, links of both kinds, devices."""
    with pytest.raises(InputError, match=reason):
        archived(FakeObjects(tmp_path / "objects", "models"), tmp_path, packed(odd))


def test_a_key_that_no_file_can_have_is_named(tmp_path: Path) -> None:
    """S3 takes any text."""
    objects = FakeObjects(tmp_path / "objects", "models")
    objects.put_text("models", "llama/a\0b", "w")
    source = {"S3Uri": "s3://models/llama/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    with pytest.raises(InputError, match="no file can have"):
        provide_model({"ModelDataSource": {"S3DataSource": source}}, tmp_path, objects, lambda: None)
