"""A counters.json to model, shared by the tests of the model and of the report."""

from tests.fakes.counters import counters

__all__ = ["counters"]
