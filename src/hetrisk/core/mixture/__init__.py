"""Mixtures of regressions: heterogeneity identification (Mc), and how many environments."""
