"""Simulators and tasks: rows to learn from and shifted environments to be tested in."""

from hetrisk.datasets.anti_causal import anti_causal_coefficients, make_anti_causal
from hetrisk.datasets.cats_and_dogs import make_cats_and_dogs
from hetrisk.datasets.economy import load_economy
from hetrisk.datasets.natural import NaturalTable, load_natural, natural_names
from hetrisk.datasets.registry import TASKS, load_task
from hetrisk.datasets.selection_bias import make_selection_bias, selection_bias_coefficients
from hetrisk.datasets.task import Labelled, Sample, ShiftTask

__all__ = [
    "TASKS",
    "Labelled",
    "NaturalTable",
    "Sample",
    "ShiftTask",
    "anti_causal_coefficients",
    "load_economy",
    "load_natural",
    "load_task",
    "make_anti_causal",
    "make_cats_and_dogs",
    "make_selection_bias",
    "natural_names",
    "selection_bias_coefficients",
]
