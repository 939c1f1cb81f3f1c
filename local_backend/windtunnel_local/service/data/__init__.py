"""The files that go into a job and come out of it: channels, source, checkpoints, artifacts, caches."""
