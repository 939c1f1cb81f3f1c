"""Tests of the price/performance report."""
