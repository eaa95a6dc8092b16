"""The paper's method: stochastic gates, the invariance penalty (Mp), and the loop over both."""
