"""Known or inferred environments: rows to one kind of partition, and moments by environment."""
