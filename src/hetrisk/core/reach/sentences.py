"""The sentences of a decision: which columns, how sure, and what speaks against it."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.result import EnvironmentScore, SearchSettings
from hetrisk.core.thresholds import THRESHOLDS

EMPTY: Constant[str] = "nothing is said about the target"
ASKED_FOR: Constant[str] = "Kept: asked for."
LISTED: Constant[int] = 5  # columns named in a sentence
LARGEST: Constant[float] = 9.99  # change of an error that a sentence tells in full


def listed(chosen: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Names of the columns chosen; levels of a category are one."""
    names = _names(chosen, groups, settings)
    shown = ", ".join(names[:LISTED])
    more = len(names) - LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def several(chosen: BoolArray, groups: IntArray, settings: SearchSettings) -> bool:
    """Whether `listed` names more than one column."""
    return len(_names(chosen, groups, settings)) > 1


def _names(chosen: BoolArray, groups: IntArray, settings: SearchSettings) -> list[str]:
    """Names of the columns chosen, group by group."""
    together = [np.flatnonzero(chosen & (groups == g)) for g in np.unique(groups[chosen])]
    return [n for own in together for n in _named_as(own, settings)]


def _named_as(group: IntArray, settings: SearchSettings) -> list[str]:
    """What to call the columns of a group: levels of a category by its name, others by theirs."""
    names = [settings.name(int(j)) for j in group]
    # A level is named as its column and its value.
    heads = {name.rpartition("=")[0] for name in names}
    return names if len(names) == 1 or len(heads) > 1 or "" in heads else list(heads)


def out_of(left: BoolArray, varies: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """How many columns, a category being one, or groups of them leave, of how many, and which."""
    gone, all_of_them = (len(np.unique(groups[some])) for some in (left, varies))
    grouped = len(_names(varies, groups, settings)) > all_of_them
    what = "groups of columns" if grouped else "columns"
    return f"{gone} of {all_of_them} {what} left out ({listed(left, groups, settings)})"


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


def not_sure(environments: str, p_value: float) -> str:
    """Why nothing is done about environments that do not surely differ."""
    if p_value < THRESHOLDS.alpha:
        what = "differs by less than three standard errors"
    else:
        what = "does not differ beyond chance"
    return (
        f"The regression of the target {what} between the {environments.removeprefix('the ')} (p = "
        f"{p_value:.2g}): plain ERM on all columns."
    )


def refused(left: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Why columns that would pay at the reach stay."""
    them = "them" if several(left, groups, settings) else "it"
    return (
        f"Without {listed(left, groups, settings)} the environment that moves most would suffer "
        f"less, but not enough of what moves would be gone for {them} to be to blame: other "
        "relations move as well, and no column is left out."
    )


def unpaid(left: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Why effects of the target stay, though their mechanism differs."""
    both = several(left, groups, settings)
    follow, them = ("follow", "them") if both else ("follows", "it")
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
