"""The representation of a fitted model in a notebook."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from sklearn.utils import estimator_html_repr

from hetrisk.report.extraction import summarize
from hetrisk.report.page import DECISIONS, template


def repr_html(model: Any) -> str:
    """Return the verdict of a fitted model above scikit-learn's own diagram of it."""
    summary = summarize(model)
    return template("card.html").render(
        s=summary,
        decisions=[decision for decision, _ in DECISIONS],
        diagram=Markup(estimator_html_repr(model)),
    )
