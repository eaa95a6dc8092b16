"""What a run may be asked for: names that exist, and at least one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def check_request(
    seeds: int, methods: Sequence[str], redo: Sequence[str], known: Mapping[str, object]
) -> None:
    """Refuse seeds, methods or methods to run again that there are none of."""
    check_names("methods", methods, known)
    check_names("redo", redo, known)
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1; got {seeds}.")


def check_names(argument: str, given: Sequence[str], known: Mapping[str, object]) -> None:
    """Refuse names that are not known."""
    unknown = [name for name in given if name not in known]
    if unknown:
        options = ", ".join(known)
        raise ValueError(f"{argument} must be among {options}; got {', '.join(unknown)}.")
