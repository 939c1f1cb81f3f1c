"""Packing a model again with its code: all of it comes through, and nothing that leaves its folder does."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import SourceError
from windtunnel.request.model_archive import repack

NAMES = st.lists(
    st.text("abé ._-", min_size=1, max_size=6).filter(lambda n: n.strip(".")), min_size=1, max_size=3
)
FILES = st.dictionaries(NAMES.map("/".join), st.binary(max_size=300), max_size=5)


def archive(files: dict[str, bytes], *more: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT) -> io.BytesIO:
    """A .tar.gz of the files and of what else is given."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=form) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(data), 0o750, 1_700_000_000
            tar.addfile(info, io.BytesIO(data))
        for info in more:
            tar.addfile(info)
    out.seek(0)
    return out


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def packed(
    model: io.BytesIO, code: dict[str, bytes], *, replace: bool = True
) -> dict[str, tarfile.TarInfo | bytes]:
    """By name: content of files, the entry of all else."""
    out = io.BytesIO()
    repack(model, archive(code), out, replace_code=replace)
    out.seek(0)
    found: dict[str, tarfile.TarInfo | bytes] = {}
    with tarfile.open(fileobj=out) as tar:
        for info in tar:
            assert info.name not in found, "twice"
            content = tar.extractfile(info) if info.isreg() else None
            found[info.name] = info if content is None else content.read()
    return found


@settings(max_examples=50)
@given(FILES, FILES, st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
def test_everything_comes_through(model: dict[str, bytes], code: dict[str, bytes], form: int) -> None:
    """Names and contents, in whatever form of tar, beside the code in its folder."""
    given_code = {f"code/{name}": data for name, data in code.items()}
    found = packed(archive({f"m/{name}": data for name, data in model.items()}, form=form), code)
    files = {name: data for name, data in found.items() if isinstance(data, bytes)}
    assert files == {**given_code, **{f"m/{name}": data for name, data in model.items()}}


def test_code_replaces_what_it_must_and_no_more() -> None:
    """A directory takes the place of ``code/``; a script alone is added to it, over one of its name."""
    old = {"model.pth": b"w", "./code/inference.py": b"old", "code/lib.py": b"lib", "codebook.bin": b"c"}
    files = {"model.pth": b"w", "code/inference.py": b"new", "codebook.bin": b"c"}
    new = {name: data for name, data in packed(archive(old), {"inference.py": b"new"}).items() if data != b""}
    assert {name: data for name, data in new.items() if isinstance(data, bytes)} == files
    added = packed(archive(old), {"inference.py": b"new"}, replace=False)
    assert {n: d for n, d in added.items() if isinstance(d, bytes)} == {**files, "code/lib.py": b"lib"}


def test_links_within_stay() -> None:
    """Also those that climb, as far as they stay inside."""
    links = [link("a/now", "../v1/w.bin"), link("same", "v1/w.bin", tarfile.LNKTYPE), link("self", ".")]
    found = packed(archive({"v1/w.bin": b"w"}, *links), {"inference.py": b"x"})
    kept = {n: e.linkname for n, e in found.items() if isinstance(e, tarfile.TarInfo) and e.linkname}
    assert kept == {"a/now": "../v1/w.bin", "same": "v1/w.bin", "self": "."}


@pytest.mark.parametrize(
    "members",
    [
        [link("../evil", "x")],
        [link("/etc/evil", "x")],
        [link("a/../../evil", "x")],
        [link("a/../evil", "x")],
        [link("out", "/etc")],
        [link("out", "..")],
        [link("a/out", "../..")],
        [link("hard", "../evil", tarfile.LNKTYPE)],
        [link("hard", "/etc/passwd", tarfile.LNKTYPE)],
        # Each leads to a place inside by its words alone, and outside once the links are followed.
        [link("x/root", ".."), link("x/y/out", "../root/..")],
        [link("x/root", ".."), link("x/root/out", "..")],
        [link("pipe", "", tarfile.FIFOTYPE)],
        [link("null", "", tarfile.CHRTYPE)],
    ],
    ids=lambda members: " ".join(f"{info.name}->{info.linkname}" for info in members),
)
def test_what_leaves_its_folder_is_refused(members: list[tarfile.TarInfo]) -> None:
    """The member is named; of the code's archive too."""
    hostile = archive({"model.pth": b"w"}, *members)
    with pytest.raises(SourceError, match=r"model\.tar\.gz has the member '.*: nothing was uploaded"):
        repack(hostile, archive({"inference.py": b"x"}), io.BytesIO(), replace_code=True)
    hostile.seek(0)
    with pytest.raises(SourceError, match="the code's archive has the member"):
        repack(archive({}), hostile, io.BytesIO(), replace_code=True)


@pytest.mark.parametrize("cut", [0, 10, 100])
def test_what_is_no_archive(cut: int) -> None:
    """Cut off, empty, or something else: said, with how to make one."""
    whole = archive({"model.pth": bytes(range(256)) * 40}).getvalue()
    for data in (whole[:cut], b"PK\x03\x04 a zip", whole[:-12] + b"\0" * 12):
        with pytest.raises(SourceError, match=r"cannot be read as a \.tar\.gz"):
            repack(io.BytesIO(data), archive({"inference.py": b"x"}), io.BytesIO(), replace_code=True)
