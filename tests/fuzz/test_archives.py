"""Whatever is in a source archive: it is refused by name, or every tool unpacks it inside one directory."""

from __future__ import annotations

import errno
import gzip
import io
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windtunnel_local.service.data import source
from windtunnel_local.service.ground.errors import InputError

URI = "s3://bucket/sourcedir.tar.gz"
SYM, LNK, DIR, REG = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.REGTYPE
Entry = tuple[str, bytes, str, dict[str, str]]
"""Name, type, link's target, PAX records."""


def archive(entries: list[Entry], form: int = tarfile.PAX_FORMAT, size: int = 3) -> bytes:
    """A tar.gz of these members, valid or not."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", format=form, encoding="utf-8", compresslevel=1) as tar:
        for name, kind, link, records in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.pax_headers = kind, link, records
            info.size = size if kind in (REG, tarfile.AREGTYPE, tarfile.CONTTYPE) else 0
            info.mode = 0o4755
            tar.addfile(info, io.BytesIO(b"x" * info.size))
    return data.getvalue()


def provided(folder: Path, data: bytes) -> Path:
    """What the container would get. Raises ``InputError``."""
    (folder / "given").write_bytes(data)
    target = folder / "source.tar.gz"
    try:
        source.provide_archive(folder / "given", target, URI)
    finally:
        assert sorted(path.name for path in folder.iterdir()) in (["given"], ["given", "source.tar.gz"])
    return target


def by_python(packed: Path, into: Path) -> None:
    """As the training toolkit unpacks it: `extractall` without a filter."""
    with tarfile.open(packed, "r:gz") as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(into, filter="fully_trusted")  # noqa: S202  that is the point
        else:
            tar.extractall(into)  # noqa: S202


def by_gnu_tar(packed: Path, into: Path) -> None:
    """As a training image with a shell does."""
    subprocess.run(["tar", "xzf", packed, "-C", into], check=True, capture_output=True)


def tree(root: Path) -> dict[str, str]:
    """Every path below: what it is, and what it holds or leads to."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = os.fsencode(path.relative_to(root)).decode("utf-8", "surrogateescape")
        if path.is_symlink():
            found[name] = f"link {path.readlink()}"
            assert _is_circle(path) or Path(os.path.realpath(path)).is_relative_to(root), f"{name} leads out"
        else:
            found[name] = "folder" if path.is_dir() else f"file {path.read_bytes()!r} {path.stat().st_mode:o}"
    return found


def _is_circle(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def unpacked_safely(data: bytes) -> bool:
    """Whether the archive was accepted; then it must unpack alike, and inside, with both tools."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        (top / "job").mkdir()
        refusal = None
        try:
            packed = provided(top / "job", data)
        except InputError as error:
            refusal = str(error)
        if refusal is not None:
            assert URI in refusal
            return False
        trees = []
        for unpack in (by_python, by_gnu_tar):
            root = top / unpack.__name__ / "a" / "b"
            root.mkdir(parents=True)
            unpack(packed, root)
            assert [p.name for p in (top / unpack.__name__).iterdir()] == ["a"], "it wrote outside"
            assert [p.name for p in root.parent.iterdir()] == ["b"], "it wrote outside"
            trees.append(tree(root))
        assert trees[0] == trees[1]
        assert sorted(p.name for p in top.iterdir()) == ["by_gnu_tar", "by_python", "job"], "it wrote outside"
        return True


NAMES = st.sampled_from(
    ["a", "b", "a/b", "a/b/c", "./a", "a//b", "a/", ".", "./", "", "l", "l/x", "a/l", "a/l/x", "../x", "a/../x",
        "a/..",
     "/tmp/x", "é/ü", "\udcff", "a\nb", "n" * 150, "n" * 300, "d/" * 60 + "f", "\\..\\x", " ", "-x", "~",
     "a/./b", "A"]
)  # fmt: skip
LINKS = st.sampled_from(
    ["a", "b", "a/b", ".", "..", "../a", "../..", "../../x", "a/../..", "l", "l/x", "/etc", "", "./a", "a//b",
        "l/..", "\udcfe", "k" * 150]
)  # fmt: skip
KINDS = st.sampled_from([REG, REG, DIR, SYM, SYM, LNK, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.AREGTYPE,
    tarfile.CONTTYPE, b"S", b"D", b"Z"])  # fmt: skip
RECORDS = st.dictionaries(
    st.sampled_from(["path", "linkpath", "size", "mtime", "uid", "GNU.sparse.name", "GNU.sparse.major",
        "hdrcharset"]),
    st.sampled_from(["../x", "a/b", "/x", "l/x", "-1", "0", "7", "nan", "1e400", "x\0y", "é", "BINARY",
        "99999999999999"]),
    max_size=2,
)  # fmt: skip
ENTRIES = st.lists(st.tuples(NAMES, KINDS, LINKS, st.just({}) | RECORDS), max_size=7)
FORMS = st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])


@given(ENTRIES, FORMS)
@example([("a/l", SYM, "..", {}), ("h", LNK, "a/l", {}), ("h/x", REG, "", {})], tarfile.GNU_FORMAT)
@example([("l", SYM, "a", {}), ("l", REG, "", {}), ("a", DIR, "", {})], tarfile.PAX_FORMAT)
@example([("a", DIR, "", {}), ("a", SYM, "b", {}), ("a/x", REG, "", {})], tarfile.GNU_FORMAT)
@settings(max_examples=200)
def test_what_is_accepted_stays_inside(entries: list[Entry], form: int) -> None:
    """Links, `..`, absolute names, devices, twice the same name, PAX records, in any order."""
    try:
        data = archive(entries, form)
    except (ValueError, UnicodeError):  # a name that this format cannot even say
        return
    unpacked_safely(data)


@given(
    ENTRIES,
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4),
    st.booleans(),
)
@settings(max_examples=80)
def test_damaged_archives_stay_inside_too(
    entries: list[Entry], changes: list[tuple[int, int]], cut: bool
) -> None:
    """Flipped and missing bytes: in the tar, whose headers are mended again, and in the gzip stream."""
    try:
        plain = bytearray(gzip.decompress(archive(entries)))
    except (ValueError, UnicodeError):
        return
    for place, value in changes:
        block = place % len(plain) // 512 * 512
        plain[place % len(plain)] = value
        header = plain[block : block + 148] + b" " * 8 + plain[block + 156 : block + 512]
        plain[block + 148 : block + 156] = b"%06o\0 " % sum(header)
    packed = bytearray(gzip.compress(bytes(plain), 1))
    if cut:
        place, value = changes[0]
        packed[place % len(packed)] = value
        del packed[max(20, len(packed) - place % 64) :]
    unpacked_safely(bytes(packed))


NEAR: st.SearchStrategy[list[Entry]] = st.lists(
    st.tuples(
        st.sampled_from(["a", "a/f", "a/l", "b/c", "b/c/f", "b/c/l", "l", "f", "a/h", "h", "\udcff", "é"]),
        st.sampled_from([REG, DIR, SYM, LNK]),
        st.sampled_from(["f", "a/f", "../f", "../../f", "../l", "c", ".", "b", "a/l", "\udcff", "b/c/l"]),
        st.just({}),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda each: each[0],
)


def test_near_misses_stay_inside_and_many_pass() -> None:
    """Members as real archives have them, links among them: not all is refused, and what passes stays inside."""
    passed = []

    @given(NEAR, FORMS)
    @settings(max_examples=150)
    def attempt(entries: list[Entry], form: int) -> None:
        passed.append(unpacked_safely(archive(entries, form)))

    attempt()
    assert sum(passed) > len(passed) / 6


def entry(name: str, kind: bytes = REG, link: str = "", **records: str) -> Entry:
    return name, kind, link, {key.replace("__", "."): value for key, value in records.items()}


@pytest.mark.parametrize(
    ("entries", "named", "reason"),
    [
        ([entry("/etc/cron.d/x")], "'/etc/cron.d/x'", "absolute path"),
        ([entry("a/../../x")], "'a/../../x'", "'..'"),
        ([entry("a", path="../x")], "'../x'", "'..'"),
        ([entry("l", SYM, "/etc")], "'l'", "leads out of the source directory, to '/etc'"),
        ([entry("a/l", SYM, "../../x")], "'a/l'", "leads out"),
        ([entry("l", SYM, "a", linkpath="../x")], "'l'", "leads out of the source directory, to '../x'"),
        ([entry("l", SYM, "a"), entry("l/x")], "'l/x'", "lies behind a symbolic link"),
        ([entry("a/l", SYM, ".."), entry("h", LNK, "a/l")], "'h'", "a hard link must name a file"),
        ([entry("h", LNK, "../../etc/passwd")], "'h'", "leads out"),
        ([entry("h", LNK, "later"), entry("later")], "'h'", "before it"),
        ([entry("a"), entry("a", SYM, "b")], "'a'", "appears twice, as a file and as a symbolic link"),
        ([entry("a"), entry("a/b")], "'a/b'", "lies behind a file"),
        ([entry("p", tarfile.FIFOTYPE)], "'p'", "device or a pipe"),
        ([entry("c", tarfile.CHRTYPE)], "'c'", "device or a pipe"),
        ([entry("s", b"S")], "'s'", "sparse"),
        ([entry(".", SYM, "a")], "'.'", "the source directory itself"),
        ([entry("x" * 300)], "'xxx", "longer than 255 bytes"),
        ([entry("l", SYM, "y" * 5000)], "'l'", "no file can have"),
        ([entry("a", path="x\0y")], "'x\\x00y'", "no file can have"),
        ([entry("a\x1b[31m\n", tarfile.FIFOTYPE)], "'a\\x1b[31m\\n'", "device"),
    ],
)
def test_what_is_refused_is_named(tmp_path: Path, entries: list[Entry], named: str, reason: str) -> None:
    """Which member, and why; control characters are shown, not sent to a terminal."""
    with pytest.raises(InputError) as error:
        provided(tmp_path, archive([entry("train.py"), *entries]))
    assert f"member {named}" in str(error.value)
    assert reason in str(error.value)


def test_a_huge_declared_size_is_refused_at_once(tmp_path: Path) -> None:
    """Before any of its bytes is read or written."""
    info = tarfile.TarInfo("big")
    info.size = 5 << 30
    with pytest.raises(InputError, match=r"'big' makes it unpack to more than 4 GiB"):
        provided(tmp_path, gzip.compress(info.tobuf(tarfile.GNU_FORMAT)))


def test_a_bomb_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of all files and their number have limits, and what was written so far is gone."""
    monkeypatch.setattr(source, "MAX_BYTES", 1 << 30)
    monkeypatch.setattr(source, "MAX_MEMBERS", 50)
    many = archive([entry(f"f{n}") for n in range(60)])
    with pytest.raises(InputError, match="more than 50 members"):
        provided(tmp_path, many)
    monkeypatch.setattr(source, "MAX_BYTES", 100)
    with pytest.raises(InputError, match="'f33' makes it unpack to more than"):
        provided(tmp_path, many)


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_bomb_of_headers_is_bounded(tmp_path: Path, kind: bytes) -> None:
    """A header that unpacks to gigabytes would be read into memory whole."""
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 1 << 40
    data = gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + b"1" * (3 << 20), 1)
    with pytest.raises(InputError, match="headers are larger"):
        provided(tmp_path, data)


@pytest.mark.parametrize(
    ("records", "reason"), [(b"1" * 60_000, "headers are larger"), (b"1" * 9_000, "digits")]
)
def test_records_that_take_hours_to_parse_are_not_parsed(tmp_path: Path, records: bytes, reason: str) -> None:
    """Some Pythons look at each digit of a PAX header once for each digit before it, and hold all requests up."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(records)
    data = info.tobuf(tarfile.GNU_FORMAT) + records + bytes(-len(records) % tarfile.BLOCKSIZE)
    with pytest.raises(InputError, match=reason):
        provided(tmp_path, gzip.compress(data + tarfile.TarInfo("train.py").tobuf() + bytes(1024)))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_of_headers_without_end_are_refused(tmp_path: Path, kind: bytes) -> None:
    """`tarfile` goes one call deeper for each."""
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 9
    header = info.tobuf(tarfile.GNU_FORMAT) + b"9 a=bcde\n".ljust(tarfile.BLOCKSIZE, b"\0")
    data = gzip.compress(header * 900 + tarfile.TarInfo("train.py").tobuf() + bytes(1024))
    with pytest.raises(InputError, match="cannot be read"):
        provided(tmp_path, data)


@pytest.mark.parametrize(
    "data", [b"", b"PK\3\4", gzip.compress(b""), gzip.compress(b"x" * 2000), archive([entry("a")])[:60]]
)
def test_what_is_no_archive_is_said_or_empty(tmp_path: Path, data: bytes) -> None:
    """A wrong file is a clear error."""
    with pytest.raises(InputError, match="cannot be read"):
        provided(tmp_path, data)


def test_what_a_file_is_stays(tmp_path: Path) -> None:
    """Contents, execute bits, times and links pass; owners and set-user-id bits do not."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, kind, link in (
            ("pkg", DIR, ""),
            ("pkg/run.sh", REG, ""),
            ("same", LNK, "pkg/run.sh"),
            ("l", SYM, "pkg"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.mtime, info.uid = (
                kind,
                link,
                0o6755,
                1_700_000_000,
                4711,
            )
            info.size = 5 if kind == REG else 0
            tar.addfile(info, io.BytesIO(b"hello"))
    with tarfile.open(provided(tmp_path, data.getvalue())) as tar:
        found: dict[str, Any] = {member.name: member for member in tar}
        assert tar.extractfile("pkg/run.sh").read() == b"hello"  # type: ignore[union-attr]
    assert found["pkg/run.sh"].mode == 0o755
    assert found["pkg/run.sh"].mtime == 1_700_000_000
    assert found["same"].linkname == "pkg/run.sh"
    assert found["l"].linkname == "pkg"
    assert {member.uid for member in found.values()} == {0}
