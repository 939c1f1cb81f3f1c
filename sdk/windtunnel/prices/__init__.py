"""Prices fetched from AWS, kept in the home, and who asks AWS for them. The built-in ones: `priceperf.money.prices`."""
