"""Says what becoming a core changes in torch and torch_xla, and what the table of hooks says that it changes.

    hooked.py FRAMEWORK_VERSION...

Each version in a process of its own.
"""

import os
import pkgutil
import sys
import warnings
from unittest.mock import MagicMock

from neuron_sim import settings
from neuron_sim.hooks import activation
from neuron_sim.launcher import preload
from saying import say

preload.core()
# What is imported after this gets its hooks then.
import torch_xla._dynamo.dynamo_bridge  # noqa: E402
import torch_xla.experimental.custom_kernel  # noqa: E402
import torch_xla.experimental.splash_attention  # noqa: E402
import torch_xla.experimental.stablehlo_custom_call  # noqa: E402
from neuron_sim.hooks import table  # noqa: E402  (needs torch_xla)


def functions():
    """All functions of torch's modules and classes by where they are: ``module:name``, ``module:Class.name``."""
    found = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in ("torch", "torch_xla", "_XLAC"):
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == module_name:
                found |= {f"{module_name}:{name}.{part}": inner for part, inner in vars(value).items()}
            else:
                found[f"{module_name}:{name}"] = value
    return {name: value for name, value in found.items() if callable(value)}


def named(hooks):
    """The functions of torch that hooks replace, as `functions` names them."""
    for hook in hooks:
        module, _, path = hook.entry.partition(":")
        if hook.told or "::" in hook.entry or hook.is_optional or module in ("sys", "warnings"):
            continue
        parents, _, name = path.rpartition(".")
        owner = pkgutil.resolve_name(f"{module}:{parents}") if parents else None
        yield f"{owner.__module__}:{owner.__qualname__}.{name}" if owner else hook.entry


def compare():
    before = functions()
    activation.activate()
    after = functions()
    version = settings.read().framework_version
    say(
        changed=sorted(name for name in before | after if before.get(name) is not after.get(name)),
        table=sorted(named([*table.table(MagicMock()), *table.names(version)])),
    )


warnings.simplefilter("ignore", FutureWarning)
for version in sys.argv[1:]:
    if os.fork() == 0:
        os.environ["WINDTUNNEL_FRAMEWORK_VERSION"] = version
        compare()
        sys.stdout.flush()
        os._exit(0)
    _, status = os.wait()
    assert status == 0
