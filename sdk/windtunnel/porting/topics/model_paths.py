"""Paths of saved models: of a container, SageMaker keeps only /opt/ml/model and /opt/ml/checkpoints."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import constant, default_of, handed, is_method, parameters, receiver
from windtunnel.porting.subject import Subject

PICKLES = ("pickle.dump", "dill.dump", "cloudpickle.dump", "joblib.dump")
_SAVES = {"torch.save", "torch_xla.core.xla_model.save", "torch.jit.save", *PICKLES}
"""Functions that are given what they save first, and then the path or an open file."""
_METHODS = ("save_pretrained", "save_model")
_KEEPS = ("cpu", "to", "eval", "half", "float")
_JOINS = ("join", "Path", "PurePath", "str", "abspath", "fspath")
_ELSEWHERE = re.compile(r"upload|push_to_hub|log_model|log_artifact|chdir|model_dir|^exec$", re.IGNORECASE)
"""In words of programs that send saved files elsewhere, or get paths from elsewhere, as nanoGPT's configurator."""


def lost(subject: Subject) -> Iterator[Finding]:
    """A finding on the first model that a program saves, where all of them go to paths written in its text."""
    if not (subject.trains or subject.managed) or not (subject.uses_device or subject.managed):
        return
    saved = _saved(tuple(subject.program)) if subject.whole else []
    if saved and saved[0][0] is subject:
        path = saved[0][2]
        yield Finding(
            path.lineno,
            f"the model goes to {subject.script.segment(path)}. SageMaker keeps only what is below /opt/ml/model. Let "
            'the path begin with os.environ["SM_MODEL_DIR"], or with /opt/ml/checkpoints for checkpoints.',
            sure=False,
        )


@functools.lru_cache(maxsize=1)
def _saved(program: Sequence[Subject]) -> list[tuple[Subject, ast.Call, ast.expr]]:
    """The saved models, with their paths; empty where one of them may be kept."""
    for one in program:
        texts = (node.value for node in one.script.nodes if isinstance(node, ast.Constant))
        named = any(isinstance(text, str) and ("/opt/ml" in text or text.startswith("SM_")) for text in texts)
        if named or any(map(_ELSEWHERE.search, one.script.words)):
            return []
    found = [(one, call, path) for one in program for call, path in _models_of(one)]
    return found if all(_is_of_the_text(one, path, set()) for one, _, path in found) else []


def _models_of(one: Subject) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that save a model or its state, with the path."""
    for call, name in one.script.calls:
        place = int(name in _SAVES)
        if not (name in _SAVES or is_method(call, *_METHODS)) or len(call.args) <= place:
            continue
        given = call.args[0]
        made = [given, *one.script.contents(ast.unparse(given))]
        text = " ".join(map(ast.unparse, made))
        if (
            not place
            or "state_dict" in text
            or ast.unparse(_bare(given)) in one.script.models
            or (name not in PICKLES and _is_given(one, given))
        ):
            yield call, one.script.opened(call.args[place]) or call.args[place]


def _bare(node: ast.expr) -> ast.expr:
    """``model`` of ``model.module.eval().cpu()``."""
    while is_method(node, *_KEEPS):
        node = receiver(node)
    return node.value if isinstance(node, ast.Attribute) and node.attr == "module" else node


def _is_given(one: Subject, node: ast.expr) -> bool:
    """Whether an expression is a parameter of the function around it."""
    return ast.unparse(node) in parameters(one.script.scope(node))


def _is_of_the_text(one: Subject, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether a path begins with a text written in the program, perhaps behind names, calls or parameters."""
    if node in seen:
        return False
    seen = {*seen, node}
    if isinstance(node, ast.JoinedStr | ast.BinOp | ast.FormattedValue):
        return any(_is_of_the_text(one, first, seen) for first in [*ast.iter_child_nodes(node)][:1])
    if isinstance(node, ast.Call):
        if is_method(node, "format", "joinpath"):
            return _is_of_the_text(one, receiver(node), seen)
        joins = one.script.is_call_of(node, *_JOINS) and bool(node.args)
        return joins and _is_of_the_text(one, node.args[0], seen)
    if not isinstance(node, ast.Name):
        text = constant(node)
        return isinstance(text, str) and not text.startswith(("%", "{"))
    scope = one.script.scope(node)
    given = [(one, value) for value in one.script.values(node.id)]
    if isinstance(scope, ast.FunctionDef) and node.id in parameters(scope):
        for other, call in one.calls_of(scope):
            value = dict(handed(scope, call)).get(node.id)
            given.append((other, value) if value else (one, default_of(scope, node.id) or node))
    return bool(given) and all(_is_of_the_text(other, value, seen) for other, value in given)
