"""Calls that only one rank makes: the tests of the rank around them, and how to take a call out of these."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator

from windtunnel.porting.finding import Edit, replaced
from windtunnel.porting.nodes import argument, arguments, calls_in, constant, names_in, names_rank, terms
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_ON_ONE = re.compile("distributed|parallel|is_initialized", re.IGNORECASE)
"""May stand beside the rank, as in ``not args.distributed or rank == 0``."""
_IS_FIRST = re.compile(
    r"(^|[._])is_\w*(main|master_ordinal|global_zero|process_zero|rank_?(0|zero))(_process)?$"
)
_VALUES = re.compile(
    r"\w*(state_|to_|^as_?|^)dict|(get|unwrap|is|has)\w*|deepcopy|list|int|float|str|round|len|max|min|vars|items|join|"
    r"format|Path|now|time|strftime|item|cpu"
)
"""Functions that only make a value."""
_TIMES = ("now", "time", "strftime")
"""Those of them that give each process another value."""


def is_by_one(subject: Subject, call: ast.Call) -> bool:
    """Whether a test of the rank stands around a call, or around each call of the function that it is in."""
    calls = _callers(subject, call)
    within = bool(calls) and all(_is_of_one_rank(one, to) for one, to in calls)
    return within or _is_of_one_rank(subject, call)


def is_by_some(subject: Subject, call: ast.Call) -> bool:
    """Whether some ranks surely never reach a call. Tests that may hold on all, as ``rank != -1``, do not count."""

    def split(one: Subject, to: ast.Call) -> bool:
        return any(_splits_ranks(one.script, test) for test in deciding(one.script, to))

    calls = _callers(subject, call)
    return split(subject, call) or (bool(calls) and all(split(one, to) for one, to in calls))


def is_in_a_step(subject: Subject, call: ast.Call) -> bool:
    """Whether a call stands in the training loop, or in a function that is called there."""
    return any(
        part in one.steps
        for one, to in [(subject, call), *_callers(subject, call)]
        for part in one.script.above(to)
    )


def knows_rank(script: Script, call: ast.Call, before: int = sys.maxsize) -> bool:
    """Whether a call's arguments depend on the rank, perhaps by a name that is assigned before a line."""
    given = arguments(call)
    # Of cfg.seed, only what is assigned to cfg.seed counts, not how cfg was made.
    owners = (ast.Attribute, ast.Subscript, ast.Call)
    names = {
        ast.unparse(one)
        for value in given
        for one in ast.walk(value)
        if isinstance(one, ast.Name | ast.Attribute)
        and not (
            isinstance(outer := script.parents[one], owners) and next(ast.iter_child_nodes(outer)) is one
        )
    }
    made = [
        node.value
        for node in script.walk(ast.Assign, ast.AugAssign)
        if isinstance(node, ast.Assign | ast.AugAssign) and node.lineno < before
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if ast.unparse(target) in names
        and (isinstance(target, ast.Attribute) or script.scope(node) in script.scopes(call))
    ]
    return any(names_rank(ast.unparse(value)) for value in (*given, *made))


def taken_out(
    subject: Subject, call: ast.Call, is_for_all: Callable[[ast.Call], bool]
) -> tuple[Edit, ...] | None:
    """The edits that let all processes reach a call which a test of the rank in its function keeps for one; None where
    that is not sure.

    ``is_for_all``: whether all processes may make another call that stands beside it.
    """
    script = subject.script
    guard = next(
        (one for one in script.above(call) if isinstance(one, ast.If) and names_rank(ast.unparse(one.test))),
        None,
    )
    if guard is None or guard.orelse or script.before(guard).strip() or script.is_elif(guard):
        return None
    if _is_of_one_rank(subject, guard) or any(_is_of_one_rank(*to) for to in _callers(subject, call)):
        return None  # only one rank reaches the test
    stays = script.statement(call) not in guard.body or not all(map(script.is_alone, guard.body[1:]))
    stays = stays or not all(_is_harmless(subject, one, is_for_all) for one in guard.body)
    stays = stays or _makes_folders_of_the_time(script, guard)
    if stays or _lacks_a_name(subject, guard) or "#" in script.segment(guard.test):
        return None
    rest = [one for one in terms(guard.test) if not names_rank(ast.unparse(one))]
    gone = [one for one in terms(guard.test) if one not in rest]
    if not all(map(_asks_for_rank_alone, gone)) or any(map(_gives_a_name, gone)):
        return None
    if rest:
        kept = " and ".join(_as_term(script.segment(one), one, len(rest)) for one in rest)
        return (replaced(script, guard.test, kept),)
    indent = script.before(guard)
    before = script.text[script.start(guard) : script.start(guard.test)]
    behind = script.text[script.end(guard.test) : script.start(guard.body[0])]
    found = re.findall(r"#[^\r\n]*", (before + behind).decode())
    comments = "".join(f"{one.rstrip()}{script.newline}{indent}" for one in found)
    return (
        Edit(script.start(guard), script.start(guard.body[0]), comments),
        *(Edit(script.lines[one.lineno - 1], script.start(one), indent) for one in guard.body[1:]),
    )


def leaves_out_the_first(subject: Subject, call: ast.Call) -> bool:
    """Whether a rank other than 0 reaches a call, as with ``rank == world_size - 1``: xm.save would write nothing."""
    return any(
        isinstance(test, ast.Compare)
        and names_rank(ast.unparse(test.left))
        and isinstance(test.ops[0], ast.Eq)
        and ast.unparse(other := test.comparators[0]) not in ("0", "-1", "'0'", "True")
        and _is_number(other)
        for one, to in [(subject, call), *_callers(subject, call)]
        for test in deciding(one.script, to)
    )


def _callers(subject: Subject, call: ast.Call) -> list[tuple[Subject, ast.Call]]:
    """The program's calls of the function that a call is in."""
    return subject.calls_of(subject.script.scope(call))


def _is_of_one_rank(subject: Subject, node: ast.AST) -> bool:
    """Whether a test of the rank decides on a node, perhaps by a name: ``main = rank == 0``."""
    script, tests = subject.script, [*deciding(subject.script, node)]
    names = names_in(*tests)
    tests += [
        value
        for name in names
        for value in script.values(name)
        if isinstance(value, ast.Compare | ast.BoolOp)
    ]
    return any(names_rank(ast.unparse(test)) for test in tests)


def deciding(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """The tests that decide whether a node runs: those around it, and earlier ones that end in `return` or the like."""
    for outer in script.above(node):
        if isinstance(outer, ast.If | ast.IfExp) and node is not outer.test:
            yield outer.test
        elif isinstance(outer, ast.BoolOp) and node is not outer.values[0]:
            yield outer.values[0]
        elif isinstance(outer, ast.Match):
            yield outer.subject
        yield from getattr(outer, "decorator_list", ())  # @rank_zero_only
        block = getattr(outer, "body", ())
        for one in block[: block.index(node)] if isinstance(block, list) and node in block else ():
            if isinstance(one, ast.If) and _goes_away(script, one.body[-1]):
                yield one.test
        node = outer


def _goes_away(script: Script, end: ast.stmt) -> bool:
    """Whether nothing behind a statement runs: `return`, `raise`, ``sys.exit()``."""
    if isinstance(end, ast.Expr) and isinstance(end.value, ast.Call):
        return script.called(end.value) in ("exit", "_exit", "quit")
    return isinstance(end, ast.Return | ast.Continue | ast.Break | ast.Raise)


def _splits_ranks(script: Script, test: ast.expr) -> bool:
    """Whether a test is true on some ranks and false on others, perhaps by a name."""
    if isinstance(test, ast.UnaryOp):
        return _splits_ranks(script, test.operand)
    if len(joined := terms(test)) > 1:
        return any(_splits_ranks(script, one) for one in joined)
    if isinstance(test, ast.Compare):
        sides = (test.left, test.comparators[0])
        number = next((value for one in sides if type(value := constant(one)) is int), -1)
        one = isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Gt) and number >= 0
        return one and any(names_rank(ast.unparse(side)) for side in sides)
    if isinstance(test, ast.Name) and (made := script.values(test.id)):
        return all(isinstance(one, ast.Compare | ast.Call) and _splits_ranks(script, one) for one in made)
    name = script.called(test) if isinstance(test, ast.Call) else ast.unparse(test)
    return name == "rank" or bool(_IS_FIRST.search(name))


def _is_harmless(subject: Subject, statement: ast.stmt, is_for_all: Callable[[ast.Call], bool]) -> bool:
    """Whether all processes may run a statement beside the call: it makes a value, or a folder that may exist."""
    calls = list(calls_in(statement))
    if any(subject.script.called(one) == "open" for one in calls):
        return False
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return is_for_all(statement.value) or constant(argument(statement.value, "exist_ok")) is True
    return isinstance(statement, ast.Assign) and all(_makes_a_value(subject.script, one) for one in calls)


def _makes_folders_of_the_time(script: Script, guard: ast.If) -> bool:
    """Whether each process would make a folder of its own, named by the time, while only one of these is written to."""
    calls = {script.called(call) for call in calls_in(*guard.body)}
    return not calls.isdisjoint(_TIMES) and not calls.isdisjoint(("makedirs", "mkdir"))


def _makes_a_value(script: Script, call: ast.Call) -> bool:
    """Whether a call only makes a value, as a class of the script's own does, and opens no file and starts no run."""
    own = isinstance(call.func, ast.Name) and call.func.id not in script.imports and call.func.id[0].isupper()
    return own or bool(_VALUES.fullmatch(script.called(call)))


def _lacks_a_name(subject: Subject, guard: ast.If) -> bool:
    """Whether something in the test's body has a value on one process only."""
    script, parts = subject.script, [part for one in guard.body for part in ast.walk(one)]
    given = {name for part in parts for name in _given_names(part)}
    places = [one for one in parts if isinstance(one, ast.Name | ast.Attribute | ast.Subscript)]
    used = set(map(ast.unparse, places)) - given
    scopes = script.scopes(guard)
    return any(
        not used.isdisjoint(_given_names(node))
        and (isinstance(node, ast.Attribute | ast.Subscript) or script.scope(node) in scopes)
        and guard not in script.above(node)
        and _is_of_one_rank(subject, node)
        for node in script.nodes
    )


def _given_names(node: ast.AST) -> set[str]:
    """The names that get their value at a node, by an assignment, an import or a definition."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return {ast.unparse(node)} if isinstance(node.ctx, ast.Store) else set()
    if isinstance(node, ast.alias):
        return {node.asname or node.name.partition(".")[0]}
    return {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()


def _gives_a_name(test: ast.expr) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(test))


def _asks_for_rank_alone(test: ast.expr) -> bool:
    """Whether a test asks for the rank only, as ``rank == 0``, ``is_main_process()``, ``not rank`` or ``not distributed
    or rank in (-1, 0)``.
    """
    if isinstance(test, ast.BoolOp):
        return all(
            _asks_for_rank_alone(one) if names_rank(text := ast.unparse(one)) else bool(_ON_ONE.search(text))
            for one in test.values
        )
    if isinstance(test, ast.UnaryOp):
        return _asks_for_rank_alone(test.operand)
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Eq | ast.In) and all(map(_is_number, _compared(test)))
    return isinstance(test, ast.Name | ast.Attribute) or (
        isinstance(test, ast.Call) and not any(isinstance(one, ast.Call) for one in arguments(test))
    )


def _compared(test: ast.Compare) -> list[ast.expr]:
    """What something is compared with; the elements of a list, tuple or set one by one."""
    other = test.comparators[0]
    return other.elts if isinstance(other, ast.List | ast.Tuple | ast.Set) else [other]


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is a rank, as 0, "0", -1 and ``world_size - 1``, or the truth about one, as True."""
    value = constant(node)
    return isinstance(node, ast.UnaryOp | ast.BinOp) or isinstance(value, int) or str(value).isdigit()


def _as_term(text: str, node: ast.expr, count: int) -> str:
    """An expression's text as one of several that `and` joins, in brackets where needed: its own are not in it."""
    loose = isinstance(node, ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda) or "\n" in text
    return f"({text})" if loose and (count > 1 or "\n" in text) else text
