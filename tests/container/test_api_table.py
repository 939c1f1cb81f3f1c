"""The table of names in the documentation says what is true."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("version", ["1.11", "2.6", "2.9"])
def test_every_name_is_there_gone_or_refused_as_the_table_says(torchrun, version):
    """Supported names of the version resolve, ended ones are absent, refused ones raise with their advice."""
    (entry,) = torchrun("every_name.py", workers=1, WINDTUNNEL_FRAMEWORK_VERSION=version).said
    assert (entry["absent"], entry["lingering"], entry["silent"], entry["other"]) == ([], [], [], [])
    assert entry["refused"] > 20


def test_names_that_small_scripts_call_give_what_trn1_would(torchrun):
    """On two cores: values where there are any, else that the call goes through."""
    for entry in torchrun("called_names.py").said:
        assert entry["wrong"] == {}
