"""Sums over rows, closed forms, families of distributions, and one driver of iterations."""
