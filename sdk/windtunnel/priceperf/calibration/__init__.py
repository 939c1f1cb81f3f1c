"""The constants of the model: the published rows behind them, the fit, and the errors of its predictions."""
