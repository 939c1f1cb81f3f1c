"""Files: what every rank saves over the others' file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding
from windtunnel.porting.models import is_model
from windtunnel.porting.script import constant, is_method, keyword
from windtunnel.porting.subject import Subject, names_rank


def saves(subject: Subject) -> Iterator[Finding]:
    """`torch.save` of device tensors; with the remark where no test of the rank stands around it."""
    script = subject.script
    if not subject.trains or not (subject.cuda or subject.xla):
        return
    for call, name in script.calls:
        if name != "torch.save" or not call.args or _is_on_the_host(subject, call):
            continue
        one = _by_one_rank(subject, call)
        if one and not subject.cuda:
            continue  # the file is right where torch_xla reads it
        what = (
            "tensors of the device"
            if one
            else "every rank writes tensors of the device over the others' file"
        )
        model = ast.unparse(call.args[0])
        is_whole = model in script.models  # what reads the file expects no state_dict
        saving = f"xm.save({model}.state_dict(), ...)" if is_whole else "xm.save"
        edit = Edit(script.start(call.func), script.end(call.func), f"{subject.names.module('xm')}.save")
        yield Finding(
            call.lineno,
            "",
            f"torch.save: {what}. {saving} moves them to the host and writes on the master alone.",
            () if is_whole else (edit,),
        )


def safetensors_of_the_device(subject: Subject) -> Iterator[Finding]:
    """`save_pretrained` of a model that has been trained, and is still on the device."""
    script = subject.script
    if not (subject.cuda or subject.xla or subject.managed):
        return
    at_home = {
        ast.unparse(call.func.value)
        for call, _ in script.calls
        if isinstance(call.func, ast.Attribute)
        and (
            is_method(call, "cpu")
            or (is_method(call, "to") and constant(next(iter(call.args), None)) == "cpu")
        )
    }
    for call, _ in script.calls:
        if not is_method(call, "save_pretrained") or not isinstance(call.func, ast.Attribute):
            continue
        owner, safe = ast.unparse(call.func.value), keyword(call, "safe_serialization")
        other = owner in at_home or keyword(call, "state_dict") or (safe and constant(safe.value) is False)
        if not other and is_model(script, call.func.value) and _has_trained(subject, call):
            yield Finding(
                call.lineno,
                "",
                f"{owner}.save_pretrained raises while the model is on the device, whose memory safetensors cannot "
                f'read: {owner}.to("cpu") before it, once training is over, or pass state_dict= with tensors of the '
                "host.",
            )


def _has_trained(subject: Subject, place: ast.Call) -> bool:
    """Whether something trains before this, in the same function."""
    scope = subject.script.scopes(place)[0]
    trainers = {
        getattr(one.script.scopes(loop)[0], "name", "")
        for one in subject.program
        for loop in one.training_loops
    }
    before: list[ast.AST] = [*subject.training_loops]
    before += [
        call
        for call, name in subject.script.calls
        if name.rpartition(".")[2] in trainers or name.lower().endswith("trainer.train")
    ]
    return any(
        subject.script.scopes(one)[0] is scope and getattr(one, "lineno", 0) < place.lineno for one in before
    )


def _is_on_the_host(subject: Subject, call: ast.Call) -> bool:
    """Whether what is saved has been moved, or each rank has a file of its own, as in memory."""
    if isinstance(call.args[0], ast.Starred):
        return False  # save_on_master(*args), which is made for checkpoints
    given = " ".join(ast.unparse(one) for one in call.args)
    names = {one.id for one in call.args if isinstance(one, ast.Name)}
    made = " ".join(ast.unparse(node.value) for target, node in subject.script.assigned if target in names)
    if "BytesIO" in made:
        return True
    path = " ".join(ast.unparse(one) for one in call.args[1:])
    if "state_dict" not in given + made and ast.unparse(call.args[0]) not in subject.script.models:
        return True  # results, data, a list of losses
    return "cpu" in given or "cpu" in made or names_rank(path) or names_rank(made)


def _by_one_rank(subject: Subject, call: ast.Call) -> bool:
    """Whether a test of the rank stands around it, or around each call of the function that it stands in."""
    function = subject.script.scopes(call)[0]
    name = function.name if isinstance(function, ast.FunctionDef) else ""
    calls = [
        (one, to)
        for one in subject.program
        for to, called in one.script.calls
        if to is not call and name and called.rpartition(".")[2] == name
    ]
    within = bool(calls) and all(_is_of_one_rank(one, to) for one, to in calls)
    return within or _is_of_one_rank(subject, call)


def _is_of_one_rank(subject: Subject, call: ast.Call) -> bool:
    """Whether a test of the rank stands around it, or a return before it."""
    above = list(subject.script.above(call))
    tests = [node.test for node in above if isinstance(node, ast.If)]
    for block in above:
        for statement in getattr(block, "body", ()) if not isinstance(block, ast.Lambda | ast.IfExp) else ():
            leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return)
            if leaves and statement.lineno < call.lineno:
                tests.append(statement.test)
    return any(names_rank(ast.unparse(test)) for test in tests)
