"""Candidates that are closed forms of moments, or of rows with numpy alone: one file, one line."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.candidates.constant import Constant
from hetrisk.core.backtest.candidates.level import Level
from hetrisk.core.backtest.candidates.levels import Levels
from hetrisk.core.backtest.candidates.plain import Plain
from hetrisk.core.backtest.candidates.recent import Recent
from hetrisk.core.backtest.candidates.ridge import Ridge
from hetrisk.core.backtest.candidates.splines import Splines
from hetrisk.core.backtest.candidates.stable import Stable
from hetrisk.core.backtest.candidates.trend import Trend
from hetrisk.core.backtest.candidates.within import Within

__all__ = ["CONSTANT", "LINEAR", "PLAIN", "Candidate"]

CONSTANT, PLAIN = Constant.name, Plain.name
# In this order: of two that do equally well the first is taken.
LINEAR: tuple[type[Candidate], ...] = (
    Plain,
    Constant,
    Ridge,
    Level,
    Trend,
    Recent,
    Within,
    Levels,
    Splines,
    Stable,
)
