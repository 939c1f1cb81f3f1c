"""Lines of the script's own log that are lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding, with_argument
from windtunnel.porting.nodes import keyword
from windtunnel.porting.subject import Subject


def unheard(subject: Subject) -> Iterator[Finding]:
    """A finding on `logging.basicConfig` behind the import of torch_xla, which has called it already."""
    script = subject.script
    if not subject.uses_device:
        return
    imported = [
        node.lineno
        for node in script.nodes
        if isinstance(node, ast.Import | ast.ImportFrom) and "torch_xla" in ast.unparse(node)
    ]
    for call, name in script.calls:
        later = min(imported, default=0) < call.lineno
        if name != "logging.basicConfig" or keyword(call, "force") or not later:
            continue
        yield Finding(
            call.lineno,
            "logging.basicConfig has no effect here: the import of torch_xla has called it already. INFO lines "
            "are lost. Add force=True.",
            (with_argument(script, call, "force=True"),),
        )
