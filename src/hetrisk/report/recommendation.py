"""The first thing a reader sees: what to do, what it costs, when it pays, how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hetrisk.core.result import HOMOGENEOUS, INVARIANT, RMSE, UNSEARCHED, UNSTABLE
from hetrisk.estimators.quality import Metric, Quality
from hetrisk.report.features import DOUBTFUL_SHARE, rounding_of
from hetrisk.report.labels import count_of, listed, number, percent, tick
from hetrisk.report.summary import Action, Curve, Feature, Point, Recommendation, by_importance

ACTION = {
    INVARIANT: Action.THIS,
    HOMOGENEOUS: Action.PLAIN,
    UNSTABLE: Action.UNKNOWN,
    UNSEARCHED: Action.UNKNOWN,
}
LEAST_LOSS = 0.005  # of the plain model's error: less is no reason to doubt
CLOSE = 0.03  # relative: two errors that read as one
REACH_IN_WORDS = (
    "reach 0: nothing shifts; 1: the future is all like one environment seen; "
    "k: relations move k times as far"
)


def recommend(
    final: Any,
    features: tuple[Feature, ...],
    curve: Curve | None,
    n_rows: int,
    quality: Quality | None = None,
) -> Recommendation:
    """Return what to do with a fitted HRM estimator.

    Parameters
    ----------
    final : the estimator; its verdict decides what is advised.
    features : with their decisions.
    curve : expected error against reach, None where nothing was searched.
    n_rows : rows it was fitted on.
    quality : errors out of fold, where they are known.
    """
    left = [f for f in by_importance(features) if not f.used]
    changed = final.verdict_ == INVARIANT
    doubt = _doubt(final, left, curve) if changed else ""
    action = Action.UNKNOWN if doubt else ACTION[final.verdict_]
    linear = final.final_estimator is None
    rounding = rounding_of(final)
    answers = {
        "What it costs if nothing shifts": partial(
            _cost, changed, curve, linear, _measured(curve, quality, rounding), rounding
        ),
        "From which shift on it pays": partial(_pays, changed, curve, features)
        if _moves(final)
        else str,
        "How stable the choice is": partial(_stable, features, left, final.n_resamples_)
        if left or not changed
        else str,  # of directions the search's own words tell
        "What is assumed, not shown": partial(_assumed, final, left),
    }
    searched = final.verdict_ != UNSEARCHED
    points = [Point("How well it predicts", _predicts(quality, rounding))]
    points += [Point(question, answer()) for question, answer in answers.items() if searched]
    return Recommendation(
        action=action,
        sentence=doubt or _sentence(final, features, left, n_rows),
        points=tuple(point for point in points if point.answer),
        price=_relative(curve, 0.0) if curve else math.nan,
        gain=-_relative(curve, curve.asked) if curve else math.nan,
        reach=float(final.reach),
        break_even=float(final.break_even_),
    )


def _sentence(
    final: Any, features: tuple[Feature, ...], left: Sequence[Feature], n_rows: int
) -> str:
    if final.verdict_ == INVARIANT:
        return _use_this(left, _where_plain_was_better(final))
    better = _nothing_better(final, features)
    return {
        HOMOGENEOUS: f"Use the plain model. {better} This is the plain model.",
        UNSTABLE: f"Cannot say. {_unsafe(features)} This is the plain model: it may fail when the "
        "world moves.",
        UNSEARCHED: f"Cannot say: not searched. {_too_few(final, n_rows)} This is the plain model.",
    }[final.verdict_]


def _too_few(final: Any, n_rows: int) -> str:
    if final.sources_:
        return "All environments but one hold too few rows to be compared."
    return f"There are too few rows ({n_rows:,}) to look for environments in."


def _unsafe(features: tuple[Feature, ...]) -> str:
    if _none_stays(features):
        return (
            "What every column says about the target changes from one environment to another: "
            "only its average could be relied on."
        )
    return (
        "Relations differ between environments, but no choice of columns is both safe and stable."
    )


def _none_stays(features: tuple[Feature, ...]) -> bool:
    """Whether all but no resample keeps any column."""
    return all(f.stability >= 1 - DOUBTFUL_SHARE for f in features)


def _dispensable(features: tuple[Feature, ...]) -> list[Feature]:
    """Columns kept without which, each alone, less error is expected: the most so first."""
    found = [f for f in features if f.used and not f.asked and f.margin < -LEAST_LOSS]
    return sorted(found, key=lambda f: f.margin)


def _asked_for(features: tuple[Feature, ...]) -> list[Feature]:
    """The same of columns that stay because they were asked for."""
    return _dispensable(tuple(replace(f, asked=False) for f in features if f.asked))


def _nothing_better(final: Any, features: tuple[Feature, ...]) -> str:
    """Say whether something moves that no choice of columns helps with, or nothing was found to."""
    if _moves(final) and _dispensable(features):
        return (
            "Relations differ between environments, but no choice of columns does away with enough "
            "of that."
        )
    against = {source.column for source in final.sources_}
    asked = [f for f in features if f.asked and (f.margin < -LEAST_LOSS or f.position in against)]
    keeping = f" that keeps {listed([f.label for f in asked], 4)}" if asked else ""
    if _moves(final):
        return (
            "Relations differ between environments, but up to reach "
            f"{tick(final.reach)}, the one asked for, no other choice of columns{keeping} does "
            "better."
        )
    return "No relation was found to differ between environments."


def _moves(final: Any) -> bool:
    """Whether a source shows a relation that differs, acted upon or not."""
    return any(source.used or source.column is not None for source in final.sources_)


def _doubt(final: Any, left: Sequence[Feature], curve: Curve | None) -> str:
    """Say when to use a model that is not shown to pay; empty where it is."""
    what = "what changes between environments"
    if left:
        verb = "says" if len(left) == 1 else "say"
        what = f"what {listed([f.label for f in left], 4)} {verb} about the target"
    choice = f"Cannot say. Use this model if {what} is to go on changing, the plain model if not"
    loss = _relative(curve, curve.asked) if curve else math.nan
    better = _where_plain_was_better(final)
    if better and -CLOSE < loss <= LEAST_LOSS:
        what = listed([f.label for f in left], 4) or "no column"
        return (
            f"Cannot say, and it matters little: at reach {tick(final.reach)}, the one asked for, "
            f"this model is expected to err {percent(max(-loss, 0.0))} less than the plain model, "
            "and in the environments seen, each left out in turn, the plain model was better in "
            f"{better}. This model leaves out {what}."
        )
    unpriced = curve is not None and not math.isfinite(curve.break_even)
    assumed = any(f.assumed for f in left)
    if loss > LEAST_LOSS or (assumed and unpriced):  # never true of NaN
        shown = "assumed, not shown" if assumed else "shown, how far is not"
        return (
            f"{choice}. That it changes is {shown}: at reach "
            f"{tick(final.reach)}, the one asked for, this model is expected to err "
            f"{percent(abs(loss))} {'more' if loss >= 0 else 'less'} than the plain model."
        )
    return ""


def _where_plain_was_better(final: Any) -> str:
    """Say so where the plain model mostly did better in environments that were left out."""
    known = [s for s in final.leave_one_out_ if math.isfinite(s.error / s.error_erm)]
    worse = sum(s.error > (1 + LEAST_LOSS) * s.error_erm for s in known)
    better = sum(s.error < (1 - LEAST_LOSS) * s.error_erm for s in known)
    if worse <= better:
        return ""
    rest = f", this one in {better or 'none'}" if worse + better < len(known) else ""
    return f"{worse} of {len(known)}{rest}"


def _use_this(left: Sequence[Feature], plain_better: str) -> str:
    use = "Use this model."
    if plain_better:
        use = (
            "Use this model if shifts beyond those seen are to be feared: in the environments "
            f"seen, each left out in turn, the plain model was better in {plain_better}."
        )
    if not left:
        return (
            f"{use} It uses every column, and leans less on what changes from one environment to "
            "another."
        )
    shown, assumed = (
        listed(names, 4)
        for names in ([f.label for f in left if f.assumed == by] for by in (False, True))
    )
    one = sum(not f.assumed for f in left) == 1
    why = f"what {'it says' if one else 'they say'} about the target changes from one environment"
    also = f" By assumption, not by a test, {assumed} as well." if assumed else ""
    return f"{use} It leaves out {shown}: {why} to another.{also}"


def _predicts(quality: Quality | None, rounding: float) -> str:
    """Say so where a model predicts nothing, or everything."""
    if quality is None:
        return ""
    error, explained, ranked = (quality.error(name) for name in ("RMSE", "R²", "AUC"))
    if explained is not None and explained.this <= 0:  # never true of NaN
        return (
            "No better than always saying the average of the target: out of fold, R² is "
            f"{number(explained.this)}."
        )
    if ranked is not None and ranked.this <= 0.5:
        return f"No better than chance: out of fold, AUC is {number(ranked.this)}."
    if error is not None and error.this < rounding:
        return (
            "All but exactly, out of fold too. Nothing honest is that good: is a column known only "
            "together with the target?"
        )
    return ""


def _cost(
    changed: bool,
    curve: Curve | None,
    linear: bool,
    measured: Metric | None,
    rounding: float,
) -> str:
    sentence = _price(changed, curve, rounding)
    if sentence and not linear:
        sentence += " These are errors of linear models, by which columns are chosen."
    if sentence and measured is not None:
        instead = f" instead of {number(measured.plain)}" if changed else ""
        sentence += f" Out of fold: {number(measured.this)}{instead}."
    return sentence


def _measured(curve: Curve | None, quality: Quality | None, rounding: float) -> Metric | None:
    """Return the error out of fold where it is another than that on the rows learned from."""
    found = None if curve is None or quality is None else quality.error(curve.unit)
    if curve is None or found is None:
        return None
    pairs = ((found.this, curve.error[0]), (found.plain, curve.error_erm[0]))
    far = any(abs(new - old) > max(CLOSE * old, rounding) for new, old in pairs)
    return found if far else None


def _price(changed: bool, curve: Curve | None, rounding: float) -> str:
    if curve is None or not math.isfinite(_relative(curve, 0.0)):
        return ""
    plain = number(_at(curve, curve.error_erm, 0.0))
    if not changed:
        if curve.unit == RMSE and _at(curve, curve.error_erm, 0.0) < rounding:
            plain = "0, up to rounding"
        return f"Nothing: this is the plain model. Its expected {curve.unit} is {plain}."
    price, this = _relative(curve, 0.0), number(_at(curve, curve.error, 0.0))
    more = f"{percent(abs(price))} {'more' if price > 0 else 'less'} error"
    if abs(price) < 0.0005:
        more = "Next to nothing"
    if this == plain:
        return f"{more}: {curve.unit} {this} with either model."
    return f"{more}: {curve.unit} {this} instead of {plain}."


def _pays(changed: bool, curve: Curve | None, features: tuple[Feature, ...]) -> str:
    if curve is None:
        return ""
    if not changed:
        return _stays(curve, features)
    if not math.isfinite(curve.break_even):
        return "How far a shift must go for that to pay, these rows do not show."
    start = "From the start"
    if curve.break_even > 0:
        start = f"From reach {number(curve.break_even, 2)} on"
    gain = -_relative(curve, curve.asked)
    if not math.isfinite(gain):
        return f"{start} ({REACH_IN_WORDS})."
    return (
        f"{start}. At reach {tick(curve.asked)}, the one asked for, it errs "
        f"{percent(abs(gain))} {'less' if gain >= 0 else 'more'} than the plain model "
        f"({REACH_IN_WORDS})."
    )


def _stays(curve: Curve, features: tuple[Feature, ...]) -> str:
    """Say what the plain model comes to, and what else was there to choose."""
    end = _at(curve, curve.error_erm, curve.asked)
    if not math.isfinite(end) or curve.flat:
        return ""
    where = f"reach {tick(curve.asked)}, where this model’s expected {curve.unit} is {number(end)}"
    if _none_stays(features):
        return f"Only a model without any column would pay up to {where}."
    asked, spare = _asked_for(features), _dispensable(features)
    if asked and (not spare or asked[0].margin <= spare[0].margin):
        return (
            f"Without {asked[0].label} it would err {percent(-asked[0].margin)} less at {where}; "
            "it stays because it is to be kept."
        )
    if not spare:
        return f"No other choice of columns pays up to {where}."
    return (
        f"Without {spare[0].label} it would err {percent(-spare[0].margin)} less at {where}, but "
        "too much of what moves would go on moving."
    )


def _stable(features: tuple[Feature, ...], left: Sequence[Feature], n_resamples: int) -> str:
    """Say in how many resamples the decision was the same, and which columns are in doubt."""
    if n_resamples < 1:
        return ""
    kept = [f for f in features if f.used and f.stability > DOUBTFUL_SHARE]
    if left:
        shares = [f.stability for f in left if not math.isnan(f.stability)]
        if not shares:
            return ""
        sentence = f"Left out in {_times(min(shares), n_resamples)} resamples of the rows"
        if len(left) > 1:
            sentence = sentence.replace("Left out in", "Each of them left out in at least")
    else:
        most = max((f.stability for f in features if not math.isnan(f.stability)), default=0.0)
        if most == 0.0:
            return f"No column was left out in any of {count_of(n_resamples, 'resample')}."
        if kept:
            often = [f"{f.label} in {_times(f.stability, n_resamples)}" for f in kept]
            return f"Every column is kept, though resamples left out {listed(often, 4)}."
        sentence = (
            f"Every column is kept, and each in at least {_times(1 - most, n_resamples)} resamples"
        )
    doubt = [f"{f.label} (left out in {round(f.stability * n_resamples)})" for f in kept]
    return f"{sentence}." + (f" In doubt, though kept: {listed(doubt, 4)}." if doubt else "")


def _times(share: float, n: int) -> str:
    return f"{round(share * n)} of {n}"


def _assumed(final: Any, left: Sequence[Feature]) -> str:
    sentences = []
    assumed = [f.label for f in left if f.assumed]
    if assumed:
        sentences.append(
            f"{listed(assumed, 4)}: left out by an assumption, not by a test. Named environments "
            "would replace it by one."
        )
    kinds = {s.kind for s in final.sources_ if s.used and s.n_environments > 1}
    if kinds & {"hidden", "visible"}:
        sentences.append(
            "The environments were inferred from the rows; a column that names them, or goes "
            "along with them, would put them to a test."
        )
    if not kinds and not assumed:
        return "The rows to come are like these: what never moved here cannot be seen to."
    if not kinds:
        return " ".join(sentences)
    times = "" if final.reach == 1 else f"{tick(float(final.reach))} times "
    sentences.append(
        f"What moves next is what moved between these environments, at most {times}as far."
    )
    return " ".join(sentences)


def _at(curve: Curve, values: Any, reach: float) -> float:
    return float(np.interp(reach, curve.reach, values))


def _relative(curve: Curve, reach: float) -> float:
    """Error of this model relative to plain ERM's, less one."""
    plain = _at(curve, curve.error_erm, reach)
    return _at(curve, curve.error, reach) / plain - 1.0 if plain > 0 else math.nan
