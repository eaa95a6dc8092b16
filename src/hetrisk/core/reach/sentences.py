"""The sentences of a decision: which columns, how sure, and what speaks against it."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.result import EnvironmentScore, SearchSettings
from hetrisk.core.thresholds import THRESHOLDS

EMPTY: Constant[str] = "nothing is said about the target"
LISTED: Constant[int] = 5  # columns named in a sentence
LARGEST: Constant[float] = 9.99  # change of an error that a sentence tells in full


def listed(chosen: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Names of the columns chosen; those of one group, the levels of a category, are one."""
    _, first, size = np.unique(groups[chosen], return_index=True, return_counts=True)
    names = [settings.name(int(j)) for j in np.flatnonzero(chosen)[first]]
    # A level is named as its column and its value.
    names = [n.rpartition("=")[0] or n if s > 1 else n for n, s in zip(names, size, strict=True)]
    shown = ", ".join(names[:LISTED])
    more = len(names) - LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def out_of(left: BoolArray, varies: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """How many columns leave, of how many, and which."""
    gone, all_of_them = (len(np.unique(groups[some])) for some in (left, varies))
    return f"{gone} of {all_of_them} columns left out ({listed(left, groups, settings)})"


def unsteady(
    where: str,
    agreement: float,
    left: BoolArray,
    stability: FloatArray,
    groups: IntArray,
    settings: SearchSettings,
) -> str:
    """What does not hold on other rows, in words; empty where everything does.

    ``where`` says on how many it pays; ``left`` (d,) are columns that leave as a set.
    """
    doubted = left & (stability < THRESHOLDS.agreement)
    if agreement < THRESHOLDS.agreement:
        doubted, what = left, f"{where} it would pay"
    elif doubted.any():
        what = "in too many resamples other columns would leave, or none"
    else:
        return ""
    doubt = f" In doubt: {listed(doubted, groups, settings)}." if doubted.any() else ""
    return f"the answer does not hold on other rows: {what}.{doubt}"


def not_sure(count: int, p_value: float) -> str:
    """Why nothing is done about environments that do not surely differ."""
    if p_value < THRESHOLDS.alpha:
        what = "differs by less than three standard errors"
    else:
        what = "does not differ beyond chance"
    return (
        f"The regression of the target {what} between the {count} environments (p = "
        f"{p_value:.2g}): plain ERM on all columns."
    )


def refused(left: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Why columns that would pay at the reach stay."""
    them = "them" if len(np.unique(groups[left])) > 1 else "it"
    return (
        f"Without {listed(left, groups, settings)} the environment that moves most would suffer "
        f"less, but not enough of what moves would be gone for {them} to be to blame: other "
        "relations move as well, and no column is left out."
    )


def unpaid(left: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Why effects of the target stay, though their mechanism differs."""
    several = len(np.unique(groups[left])) > 1
    follow, them = ("follow", "them") if several else ("follows", "it")
    return (
        f"{listed(left, groups, settings)} {follow} from the target in another way in some of the "
        f"environments; leaving {them} out does not surely pay at reach {settings.reach:g}."
    )


def contradiction(scores: tuple[EnvironmentScore, ...]) -> str:
    """Say so where environments left out did worse with this model than with plain ERM."""
    if len(scores) < 3:
        return ""
    gap = np.array([score.error**2 - score.error_erm**2 for score in scores])
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    if gap.mean() <= error:
        return ""
    errors = np.array([(score.error, score.error_erm) for score in scores])
    model, plain = np.sqrt((errors**2).mean(axis=0))
    return (
        "Among the environments seen it did not pay: fitted to all but one and tried on that one, "
        f"it erred {model / plain - 1:.1%} more than plain ERM. It is for shifts beyond those."
    )


def share(change: float) -> str:
    """A relative change; nobody reads 8929944.6%."""
    return f"{change:.1%}" if change < LARGEST else f"more than {LARGEST:.0%}"
