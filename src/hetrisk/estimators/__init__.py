"""Estimators in the manner of scikit-learn: check the input, call core, set attributes."""
