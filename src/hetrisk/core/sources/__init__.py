"""Where partitions of the rows come from: rows in, partitions out, with what chance would show."""
