"""How the figures of the gallery look: on white, readable in the light and in the dark."""

from typing import Any

SETTINGS = {
    "figure.figsize": (7.0, 3.8),
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def reset(gallery_conf: dict[str, Any], fname: str) -> None:
    """Put matplotlib back to where every example starts."""
    import matplotlib as mpl

    mpl.rcdefaults()
    mpl.use("agg")
    mpl.rcParams.update(SETTINGS)
