"""Names that torch_xla has lost since the script was written."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read

_USE = f"{HEAD}torch.manual_seed(0)\nmodel = Net().to(device)\nworld = xm.xrt_world_size()\n{LOOP}"


def _told(text: str, version: str = "2.9") -> list[str]:
    return [str(one) for one in read(script(text), version) if "and newer have no " in one.text]


def test_a_name_that_is_gone_stops_the_script() -> None:
    """It ended with an AttributeError in the job, of which the check had said nothing."""
    (found,) = said(_USE)
    assert found.startswith(
        "9: PyTorch 2.7 and newer have no xm.xrt_world_size, so the script ends there. Use xr.world_size"
    )
    assert 'framework_version="2.6" and older have it' in found
    after = changed(_USE)
    assert "import torch_xla.runtime as xr\n" in after and "world = xr.world_size()\n" in after
    assert said(after) == []


@pytest.mark.parametrize(("version", "told"), [("1.13", 0), ("2.6", 0), ("2.7", 1), ("2.9", 1)])
def test_as_long_as_the_framework_has_it_nothing_is_said(version: str, told: int) -> None:
    """The version is that of the image, which the estimator names."""
    assert len(_told(_USE, version)) == told


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        ("rank = xm.get_ordinal()", "sure"),
        ("from torch_xla.core.xla_model import get_ordinal", "sure"),
        ("xm.parse_xla_device('NEURON:0')", "sure"),
        ("if args.tpu:\n    rank = xm.get_ordinal()", "note"),
        ("rank = xm.get_ordinal() if tpu else 0", "note"),
        ("try:\n    rank = xm.get_ordinal()\nexcept AttributeError:\n    rank = 0", ""),
        ("xm.get_ordinal = xr.global_ordinal\nrank = xm.get_ordinal()", ""),
        ("rank = xm.get_ordinal() if hasattr(xm, 'get_ordinal') else xr.global_ordinal()", ""),
        ("if hasattr(xr, 'world_size'):\n    rank = 0\nelse:\n    rank = xm.get_ordinal()", ""),
        (
            "def rank():\n    if hasattr(xr, 'global_ordinal'):\n        return 0\n    return xm.get_ordinal()",
            "",
        ),
        ("if hasattr(model, 'rank'):\n    rank = xm.get_ordinal()", "note"),
        ("rank = xm.get_local_ordinal()", ""),
    ],
)
def test_where_the_script_goes_on_without_it(use: str, kind: str) -> None:
    """A use that is not run in any case is a note; one that the script asks for first, none."""
    found = _told(f"import torch_xla.core.xla_model as xm\nimport torch_xla.runtime as xr\n{use}\n")
    assert ["note" if ": note: " in one else "sure" for one in found] == ([kind] if kind else [])


def test_a_call_with_arguments_is_left_to_the_user() -> None:
    """What came after the name takes none."""
    text = _USE.replace("xrt_world_size()", "xrt_world_size(1)")
    assert len(said(text)) == 1 and "xrt_world_size(1)" in changed(text)


@pytest.mark.parametrize(
    ("use", "instead"),
    [
        ("from torch._six import inf as infinity, nan", "from torch import inf as infinity, nan"),
        ("from torch._six import string_classes", "string_classes = (str, bytes)"),
        ("from torch._six import container_abcs as abcs", "import collections.abc as abcs"),
        (
            "from torch._six import int_classes, string_classes",
            "int_classes = int\nstring_classes = (str, bytes)",
        ),
        (
            "if old:\n    from torch._six import int_classes, inf",
            "if old:\n    int_classes = int\n    from torch import inf",
        ),
        ("from torch._six import queue", ""),
        ("import torch._six", ""),
    ],
)
def test_what_torch_itself_has_lost_stops_the_script_in_every_version(use: str, instead: str) -> None:
    """The image has one torch, and no framework_version brings its older names back."""
    text = f"import torch\nimport torch_xla\n{use}\n"
    (told,) = (one for one in read(script(text), "1.13") if "torch._six" in one.text)
    assert told.line == text[: text.index(use) + use.index("torch._six")].count("\n") + 1
    assert (f"\n{instead}\n" in changed(text)) == bool(instead)


def test_where_the_script_goes_on_without_torchs_older_names() -> None:
    """As libraries for several versions do."""
    text = "try:\n    from torch._six import inf\nexcept ImportError:\n    from torch import inf\n"
    assert said(text, "torch._six") == []


@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("", "torch.__version__ < '1.8'"),
        ("MAJOR, MINOR = map(int, torch.__version__.split('.')[:2])\n", "MAJOR == 1 and MINOR < 8"),
        ("old = version.parse(torch.__version__) < version.parse('1.8')\n", "old"),
        ("from compat import TORCH_MAJOR\n", "not TORCH_MAJOR >= 2"),
    ],
)
def test_torchs_older_names_for_an_older_torch(before: str, test: str) -> None:
    """Which the image does not have: the line never runs."""
    text = f"import torch\n{before}if {test}:\n    from torch._six import inf\nelse:\n    from torch import inf\n"
    assert said(text, "torch._six") == []
    other = text.replace(test, "args.old").replace("old = version", "new = version")
    assert said(other, "torch._six")
