"""Tests of the price/performance model."""
