"""The constants of the model: the published rows behind them, how they are fitted, how wrong they are."""
