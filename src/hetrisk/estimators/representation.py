"""How a fitted model shows itself in a notebook: its verdict above scikit-learn's diagram."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted


class FittedReprMixin:
    """Put a fitted model's verdict above scikit-learn's own HTML representation.

    List it before `sklearn.base.BaseEstimator`. The page lives in a layer above the estimators,
    which know it by name only and load it when a notebook asks. An unfitted model, and one
    shown with scikit-learn's ``display="text"``, look as any other estimator does.
    """

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle and _is_fitted(self):
            bundle["text/html"] = import_module("hetrisk.report").repr_html(self)
        return bundle


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model, "environment_summary_")
    except NotFittedError:
        return False
    return True
