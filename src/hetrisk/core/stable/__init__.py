"""Stable columns: propose, test, dispose. The whole decision stands in `decision`."""
