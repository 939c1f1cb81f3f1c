"""Which of a script's variables are models, by what is done with them and how they are made."""

from __future__ import annotations

import ast
import re

from windtunnel.porting.script import Script, is_method, receiver

NO_MODEL = re.compile(r"(Tokenizer\w*|Processor|Extractor|Config|Scheduler)\.from_pretrained$")
"""What else has the method of transformers' and diffusers' models."""
_MOVES = {"to", "cuda", "train", "float", "double", "half", "bfloat16"}
_MAKES_A_MODEL = re.compile(r"(^|\.)(from_pretrained|from_config|get_peft_model|unwrap_model)$")


def made_by(node: ast.expr | None) -> ast.Call | None:
    """The call that makes a value, which is perhaps moved at once; None: none does."""
    while isinstance(node, ast.Call) and is_method(node, *_MOVES):
        node = receiver(node)
    return node if isinstance(node, ast.Call) else None


def makes_a_model(name: str) -> bool:
    """Whether what is called so makes one: a class, or a method of transformers' or peft's."""
    is_class = name.rpartition(".")[2][:1].isupper() and not name.endswith(("Arguments", "Config"))
    return (is_class or bool(_MAKES_A_MODEL.search(name))) and not NO_MODEL.search(name)


def is_model(script: Script, owner: ast.expr) -> bool:
    """Whether a variable is one: something reads its parameters, or it is made as models are.

    Of one that nothing tells of, as of a function's argument, its name does.
    """
    name = ast.unparse(owner).removesuffix(".module")
    if isinstance(owner, ast.Call):
        return bool(_MAKES_A_MODEL.search(made := ast.unparse(owner.func))) and not NO_MODEL.search(made)
    makers = [ast.unparse(call.func) for value in script.values(name) if (call := made_by(value)) is not None]
    if name in script.models or any(
        _MAKES_A_MODEL.search(one) and not NO_MODEL.search(one) for one in makers
    ):
        return True
    return "model" in name.rpartition(".")[2].lower() and not any(map(NO_MODEL.search, makers))
