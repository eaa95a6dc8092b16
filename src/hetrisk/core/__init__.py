"""The mathematics: pure functions on numpy arrays and sums over rows; no estimator in sight."""
