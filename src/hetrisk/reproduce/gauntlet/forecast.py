"""Was the reach curve right? What it foretold against what came true in environments unseen.

A told fit draws its curve from the training environments alone. At reach 1 it says what error to
expect if the future is like the worst environment seen. The error that came true is that in the
worst of the environments left for testing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.reproduce.gauntlet.cases import REAL, Stage
from hetrisk.reproduce.gauntlet.methods import ERM
from hetrisk.reproduce.gauntlet.ratios import Found, record_of
from hetrisk.reproduce.records import OK

FORECASTER = "columns-4"  # the told fit at the default reach
UNIT = "RMSE"


@dataclass(frozen=True)
class Forecast:
    """One split of a real table.

    Attributes
    ----------
    stage : the split.
    reach : grid of the curve.
    erm, ours : (low, line, high) of the curve of ERM and of our model, over the grid.
    erm_came, ours_came : error in each unseen environment.
    """

    stage: Stage
    reach: FloatArray
    erm: tuple[FloatArray, FloatArray, FloatArray]
    ours: tuple[FloatArray, FloatArray, FloatArray]
    erm_came: FloatArray
    ours_came: FloatArray

    def foretold(self, reach: float) -> tuple[float, float, float]:
        """Low, line and high of ERM's curve at a reach."""
        low, line, high = (float(np.interp(reach, self.reach, values)) for values in self.erm)
        return low, line, high


@dataclass(frozen=True)
class Calibration:
    """The curve of ERM at reach 1 over all splits with numbers as target.

    Attributes
    ----------
    n : splits.
    correlation : rank correlation of the error foretold and the worst one that came true, both
        relative to the error foretold at reach 0.
    ratio : median of the error that came true over that foretold.
    covered : share of the splits in which the worst error came to lie below the band's upper end.
    """

    n: int
    correlation: float
    ratio: float
    covered: float


def forecasts(found: Found, stages: Sequence[Stage] = REAL) -> list[Forecast]:
    """Return every split whose curve was drawn in units of the error."""
    made = []
    for stage in stages:
        told, erm = (record_of(stage, name, found) for name in (FORECASTER, ERM))
        if told is None or erm is None or told["status"] != OK or erm["status"] != OK:
            continue
        curve = told.get("curve")
        if curve is None or curve["unit"] != UNIT:
            continue
        lines = {
            name: np.array(values, dtype=float) for name, values in curve.items() if name != "unit"
        }
        made.append(
            Forecast(
                stage,
                lines["reach"],
                (lines["low_erm"], lines["error_erm"], lines["high_erm"]),
                (lines["low"], lines["error"], lines["high"]),
                np.array(list(erm["errors"].values())),
                np.array(list(told["errors"].values())),
            )
        )
    return made


def calibration(made: Sequence[Forecast], reach: float = 1.0) -> Calibration | None:
    """Compare what was foretold at a reach with what came true; None for fewer than three."""
    if len(made) < 3:
        return None
    base = np.array([forecast.foretold(0.0)[1] for forecast in made])
    line = np.array([forecast.foretold(reach)[1] for forecast in made])
    high = np.array([forecast.foretold(reach)[2] for forecast in made])
    came = np.array([forecast.erm_came.max() for forecast in made])
    return Calibration(
        n=len(made),
        correlation=_rank_correlation(line / base, came / base),
        ratio=float(np.median(came / line)),
        covered=float(np.mean(came <= high)),
    )


def _rank_correlation(a: FloatArray, b: FloatArray) -> float:
    """Spearman's; NaN where one of the two never varies."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1])


def missed(made: Sequence[Forecast], reach: float = 1.0) -> list[tuple[str, float]]:
    """Splits whose worst error came to lie above the band, the furthest first, and by how much."""
    above = [
        (f"{f.stage.name}, {f.stage.split}", float(f.erm_came.max() / f.foretold(reach)[2]))
        for f in made
    ]
    return sorted([pair for pair in above if pair[1] > 1], key=lambda pair: -pair[1])
