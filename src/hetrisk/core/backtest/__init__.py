"""Backtest: train on some environments, test on others, choose, foretell."""
