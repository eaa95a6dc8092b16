"""What can be wrong with a model file."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file that is not opened, or a model that cannot be written, and why, in a sentence."""


class NewerModelWarning(UserWarning):
    """A model file was written by a later version of hetrisk than the one that opens it."""
