"""What is wrong with a model file, as a sentence."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file that is not a model hetrisk will open, or a model it cannot write, and why."""


class NewerModelWarning(UserWarning):
    """The model was written by a later version of hetrisk than the one that opens it."""
