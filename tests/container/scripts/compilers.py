"""Says which of torch's compilers are imported at first, and uses what torch_xla takes from them."""

import re
import sys
import tempfile
from pathlib import Path

from saying import say

COMPILERS = ("torch._inductor.pattern_matcher", "torch._functorch.aot_autograd", "torch_xla.stablehlo")
at_first = [name for name in COMPILERS if name in sys.modules]

import functorch  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402

names = [
    torch_xla.stablehlo.StableHLOGraphModule.__name__,
    functorch.compile.min_cut_rematerialization_partition.__name__,
]

recurrent = torch.nn.GRU(4, 4).to("xla")
result, _ = recurrent(torch.ones(2, 3, 4, device="xla"))
result.sum().backward()
torch_xla.sync()

with tempfile.TemporaryDirectory() as folder:
    exported = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    torch_xla.save_as_stablehlo(exported, Path(folder))
    text = Path(folder, "functions", "forward.mlir").read_text()

from functorch.compile import aot_function  # noqa: E402
from torch_xla.stablehlo import save_as_stablehlo  # noqa: E402

say(
    **{
        "at first": at_first,
        "names": names,
        "recurrent": list(result.shape),
        "exported": re.search(r"func.func @main", text).group(),
        "functions": [save_as_stablehlo.__module__, aot_function.__module__],
    }
)
