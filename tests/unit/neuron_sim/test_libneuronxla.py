"""What public scripts ask of libneuronxla is there; the rest is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import libneuronxla
from libneuronxla.neuron_cc_cache import (
    CacheUrl,
    CompileCache,
    CompileCacheFs,
    CompileCacheS3,
    create_compile_cache,
)
from libneuronxla.neuron_parallel_compile import parallel_compile
from neuron_sim.compiler import cache_entry, cache_location
from neuron_sim.errors import NotSimulatedError


def test_the_cache_is_the_one_that_jobs_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same address, same folder of an entry."""
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path))
    monkeypatch.setenv("NEURON_CC_FLAGS", "-O1")
    cache = create_compile_cache(CacheUrl.get_cache_url())
    assert isinstance(cache, CompileCacheFs)
    item = cache_entry.entry(tmp_path / cache_location.COMPILER, "HloModule m\n", ("-O1",))
    folder, key = cache.get_cache_dir(cache_entry.graph_hash("HloModule m\n"), ["-O1"])
    assert (folder, key) == (str(item.folder), item.folder.name)
    assert not cache.exists(folder)
    item.collect("HloModule m\n", b"", ("-O1",))
    assert cache.exists(folder)
    monkeypatch.setenv("NEURON_CC_FLAGS", f"--cache_dir={tmp_path / 'other'}")
    assert CacheUrl.get_cache_url().url == str(tmp_path / "other")


def test_an_s3_cache_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy in the container is nobody's business."""
    (tmp_path / "bucket").mkdir()
    monkeypatch.setenv("WINDTUNNEL_S3_CACHE_DIR", str(tmp_path))
    cache = create_compile_cache(CacheUrl("s3://bucket/prefix"))
    assert isinstance(cache, CompileCacheS3)
    assert cache.cache_path == f"s3://bucket/prefix/{cache_location.COMPILER}"


def test_a_cache_can_be_a_proxy_of_another(tmp_path: Path) -> None:
    """As optimum-neuron's cache of the hub is: it names the kind of address, and sets the folder itself."""
    kept = create_compile_cache(CacheUrl(str(tmp_path), url_type="fs"))

    class Proxy(CompileCache):
        def __init__(self) -> None:
            super().__init__(kept.cache_url)
            self.cache_path = kept.cache_path

    assert Proxy().cache_path == str(tmp_path / cache_location.COMPILER)


def test_a_cache_takes_a_file_of_a_librarys_own(tmp_path: Path) -> None:
    """optimum-neuron 0.1 writes down which models it has trained, in a folder beside the graphs."""
    cache = create_compile_cache(CacheUrl(str(tmp_path)))
    file = f"{cache.get_cache_dir_with_cache_key('0_REGISTRY/0.1.0/training')}/llama/model/1234.json"
    assert not cache.exists(file)
    cache.upload_string_to_file(file, "{}")
    assert cache.exists(file)
    assert (
        tmp_path / cache_location.COMPILER / "0_REGISTRY/0.1.0/training/llama/model/1234.json"
    ).read_text() == "{}"
    assert cache_entry.entries(tmp_path / cache_location.COMPILER) == []


def test_collected_graphs_are_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As Ray Train asks for, at the end of a run that collects them."""
    item = cache_entry.entry(tmp_path / cache_location.COMPILER, "HloModule m\n", ())
    item.collect("HloModule m\n", b"", ())
    parallel_compile(str(tmp_path / "work"), CacheUrl(str(tmp_path)))
    assert [entry.state for entry in cache_entry.entries(tmp_path / cache_location.COMPILER)] == ["done"]
    assert "Total successful compilations: 1" in "".join(capsys.readouterr())


def test_a_snapshot_callback_is_taken_with_a_warning() -> None:
    """It is never called, and that is said; the one before it comes back."""

    def callback(name: str, device: int, count: int) -> str:
        return "inputs"

    with pytest.warns(UserWarning, match="no HLO snapshots"):
        assert libneuronxla.register_hlo_snapshot_callback(callback) is None
    assert libneuronxla.register_hlo_snapshot_callback(None) is callback


def test_everything_else_is_refused_by_name() -> None:
    """Never a silent no-op."""
    with pytest.raises(NotSimulatedError, match="neuron_xla_compile"):
        _ = libneuronxla.neuron_xla_compile
