"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure: how long an example takes is for the benchmarks to say.
settings.register_profile("windtunnel", deadline=None)
settings.load_profile("windtunnel")
