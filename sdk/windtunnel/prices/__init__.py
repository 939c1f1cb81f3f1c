"""Fetches prices from AWS and keeps them in the home. The built-in prices are in `priceperf.money.prices`."""
