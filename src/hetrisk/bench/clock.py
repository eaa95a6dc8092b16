"""Times that can be compared: taken in turns, the shortest of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any


def seconds(function: Callable[[], Any]) -> float:
    """Time of one call."""
    start = perf_counter()
    function()
    return perf_counter() - start


def shortest(functions: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Shortest time of each function over ``repeats`` rounds in which each is called once.

    Taking turns means that a slow spell of the machine falls on all of them; the shortest time
    is the one least disturbed.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(seconds(function))
    return {name: min(taken) for name, taken in times.items()}
