"""Backtests made by hand: the records a fitted estimator holds, with numbers that are known."""

import math

from hetrisk.core.result import Expected, Forecast, Horizon, Ranked, ReachLine, Tested
from hetrisk.report.decision import decide
from hetrisk.report.summary import ColumnLine, Difference, Origin, Quality, Summary

ERRORS = {"constant": 1.0, "plain": 0.8, "trend": 0.6, "trees": 0.5}


def ranked(errors, chosen, unit="RMSE"):
    power = 1 if unit == "log loss" else 2
    plain = errors["plain"] ** power
    return tuple(
        Ranked(
            candidate=name,
            mean=e,
            worst=1.5 * e,
            criterion=(1.5 * e) ** power,
            ratio=e**power / plain,
            ratio_low=0.9 * e**power / plain,
            ratio_high=1.1 * e**power / plain,
            chosen=name == chosen,
            note="chosen: least X" if name == chosen else "errs more",
        )
        for name, e in errors.items()
    )


def backtested(errors, timed, places=6):
    return tuple(
        Tested(
            name,
            f"{2000 + k}" if timed else f"site {k}",
            "1999" if timed else "",
            float(k + 1) if timed else math.nan,
            timed,
            40,
            e * (1 + 0.1 * k),
        )
        for k in range(places)
        for name, e in errors.items()
    )


def expected(mean):
    return Expected(mean, 0.8 * mean, 1.3 * mean)


def forecast(errors, chosen, timed, unit="RMSE", n=6, fails=math.inf):
    mine = expected(errors[chosen])
    plain, constant = expected(errors["plain"]), expected(errors["constant"])
    horizons = tuple(
        Horizon(float(h), f"{h} ahead", expected(errors[chosen] * h**0.2), plain, constant, n)
        for h in (1, 3, 5)
    )
    return Forecast(
        mine.mean,
        mine.lower,
        mine.upper,
        plain,
        constant,
        horizons if timed and n else (),
        fails,
        unit,
        n,
    )


def curve(errors, chosen):
    return tuple(
        ReachLine(
            t, errors[chosen] * (1 + t / 3), errors["plain"] * (1 + t / 2), errors["constant"]
        )
        for t in (0.0, 1.0, 2.0, 4.0)
    )


def answer(errors=None, chosen="trees", timed=True, unit="RMSE", n=6, fails=math.inf):
    """Return ranking, backtest, forecast and reach curve."""
    errors = ERRORS if errors is None else errors
    return (
        ranked(errors, chosen, unit),
        backtested(errors, timed) if n else (),
        forecast(errors, chosen, timed, unit, n, fails),
        curve(errors, chosen) if n else (),
    )


def summary(n_columns=4, name="column {}", environments=6, quality="", **options):
    ranking, backtest, expectation, reach_curve = answer(**options)
    decision = decide(ranking, backtest, expectation, reach_curve)
    columns = tuple(
        ColumnLine(name.format(j), 1 / (1 + j), 0.01 * j, (-1.0, 2.5), "Kept.")
        for j in range(n_columns)
    )
    grid = tuple(k / 10 + 0.05 for k in range(10))
    return Summary(
        origin=Origin(
            source="table.csv",
            target=name.format("y"),
            task="regression",
            reason="40 numbers",
            n_rows=1234,
            n_columns=n_columns + 2,
            time="year",
            notes=tuple((name.format(j), "3 values missing, filled in") for j in range(3)),
            left_out=((name.format("id"), "it numbers the rows"),),
            leaks=(f"{name.format(0)} gives the target away.",) if quality == "leak" else (),
            command="hetrisk fit table.csv --target y",
            version="0.3.0",
        ),
        decision=decision,
        reach=1.0,
        ranking=ranking,
        backtest=backtest,
        forecast=expectation,
        reach_curve=reach_curve,
        break_even=0.0,
        columns=columns,
        evidence=(),
        differences=tuple(
            Difference(f"{2000 + k}", 40, ("size higher by 1.2 SD", "price level up by 3.1"))
            for k in range(environments)
        ),
        cautions=("Column “gdl” is nonzero in 1 of 816 rows.",),
        advice=(),
        quality=Quality(
            "yes" if quality == "classes" else "",
            grid,
            tuple(v + 0.02 for v in grid),
            tuple(v - 0.05 for v in grid),
            tuple(v + 0.06 for v in grid),
            (40,) * 10,
            True,
        ),
    )
