"""What sets jobs apart: nothing that differs is folded away, and what is new or gone is so beside the first."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf.workload.counters import Counters
from windtunnel_local.ui.jobs_compared.differences import findings, request_of, settings

VALUES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["", "1", "2"]))


@given(jobs=st.lists(VALUES, min_size=2, max_size=6))
def test_every_setting_is_in_one_of_the_two_tables(jobs: list[dict[str, str]]) -> None:
    """With each job's own value; a job without it differs from one with an empty one."""
    differ, same = settings(jobs)
    assert sorted(one.name for one in (*differ, *same)) == sorted({name for job in jobs for name in job})
    for one in (*differ, *same):
        assert one.values == tuple(job.get(one.name) for job in jobs)
    assert all(len(set(one.values)) == 1 for one in same)
    assert all(len(set(one.values)) > 1 for one in differ)


def counted(build: Any, *kinds: str, looked: bool = True) -> Any:
    """What a job found: one of each kind; ``e`` is an error."""
    listed: Any = [
        {
            "kind": kind,
            "severity": "error" if kind == "e" else "note",
            "line": "t.py:1",
            "message": f"about {kind}",
        }
        for kind in kinds
    ]
    return Counters.read(build(diagnostics=listed if looked else None)).found(came_through=True)


def test_findings_are_new_or_gone_beside_the_first_job(counters: Any) -> None:
    """Worst first; a job that was not looked at says nothing of them."""
    found = findings(
        [
            counted(counters, "a", "b"),
            counted(counters, "b", "e", "b"),
            None,
            counted(counters, looked=False),
        ]
    )
    assert [one.kind for one in found] == ["e", "a", "b"]
    changes = {one.kind: [cell.change for cell in one.cells] for one in found}
    assert changes == {
        "e": ["absent", "new", "unknown", "unknown"],
        "a": ["same", "gone", "unknown", "unknown"],
        "b": ["same", "same", "unknown", "unknown"],
    }
    assert found[0].message == "about e"


def test_nothing_is_new_beside_a_job_that_was_not_looked_at(counters: Any) -> None:
    """Nobody knows whether it was there before."""
    assert [cell.change for cell in findings([None, counted(counters, "a")])[0].cells] == ["unknown", "same"]


def test_a_request_in_words() -> None:
    """Instances, channels, environment."""
    job = {
        "ResourceConfig": {"InstanceGroups": [{"InstanceType": "ml.trn1.2xlarge", "InstanceCount": 2}]},
        "AlgorithmSpecification": {"TrainingImage": "image"},
        "InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/x"}}}],
        "Environment": {"A": "1"},
    }
    assert request_of(job) == {
        "instances": "2 × ml.trn1.2xlarge",
        "image": "image",
        "managed spot": "no",
        "channel train": "s3://b/x",
        "environment A": "1",
    }
