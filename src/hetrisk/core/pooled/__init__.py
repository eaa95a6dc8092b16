"""The search over a pool of partitions."""
