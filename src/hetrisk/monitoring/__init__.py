"""Later rows held against what a model was told to expect."""
