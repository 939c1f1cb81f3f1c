"""Which of a script's variables are models, by how they are used and made."""

from __future__ import annotations

import ast
import re
from itertools import filterfalse

from windtunnel.porting.nodes import is_method, receiver
from windtunnel.porting.script import Script

NO_MODEL = re.compile(r"(Tokenizer\w*|Processor|Extractor|Config|Scheduler)\.from_pretrained$")
"""Other classes of transformers and diffusers that have a from_pretrained(), but are no models."""
_MOVES = {"to", "cuda", "train", "float", "double", "half", "bfloat16"}
_MAKES_A_MODEL = re.compile(r"(^|\.)(from_pretrained|from_config|get_peft_model|unwrap_model)$")


def made_by(node: ast.expr | None) -> ast.Call | None:
    """The call that makes a value, which may be moved in the same expression; None: no call does."""
    while is_method(node, *_MOVES):
        node = receiver(node)
    return node if isinstance(node, ast.Call) else None


def makers_of(script: Script, name: str) -> list[ast.Call]:
    """The calls that make the values of a name, or of another expression."""
    return [call for value in script.values(name) if (call := made_by(value)) is not None]


def makes_a_model(name: str) -> bool:
    """Whether a call of this name makes a model: of a class, or of a method of transformers or peft."""
    is_class = name.rpartition(".")[2][:1].isupper() and not name.endswith(("Arguments", "Config"))
    return (is_class or bool(_MAKES_A_MODEL.search(name))) and not NO_MODEL.search(name)


def is_model(script: Script, owner: ast.expr) -> bool:
    """Whether a variable is a model: something reads its parameters, or it is made as models are.

    Where neither tells, as for a function's argument, its name does.
    """
    name = ast.unparse(owner).removesuffix(".module")
    if isinstance(owner, ast.Call):
        return bool(_MAKES_A_MODEL.search(made := ast.unparse(owner.func))) and not NO_MODEL.search(made)
    made_with = [ast.unparse(call.func) for call in makers_of(script, name)]
    if name in script.models or any(map(_MAKES_A_MODEL.search, filterfalse(NO_MODEL.search, made_with))):
        return True
    return "model" in name.rpartition(".")[2].lower() and not any(map(NO_MODEL.search, made_with))
