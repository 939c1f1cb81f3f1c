"""Seconds of one step, resource by resource, given the constants of a family of accelerators."""
