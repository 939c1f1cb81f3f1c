"""Servers, engines and containers killed at random moments, and scripts that mean harm."""
