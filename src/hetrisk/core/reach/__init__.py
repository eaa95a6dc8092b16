"""From the moments of environments to a decision, its price and its curve."""
