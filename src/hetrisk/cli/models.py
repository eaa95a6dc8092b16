"""``--model``: the final model by a name, or by an import path the user vouches for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

NAMES = ("linear", "boosted", "forest")


def check_model(name: str, allow_import: bool) -> None:
    """Refuse a model that is neither a known name nor an import path that was allowed."""
    if name in NAMES:
        return
    if "." not in name:
        raise click.BadParameter(
            f"{name!r} is not one of {', '.join(NAMES)}, nor an import path such as "
            "sklearn.neighbors.KNeighborsRegressor.",
            param_hint="--model",
        )
    if not allow_import:
        raise click.BadParameter(
            f"importing {name!r} runs its code: add --allow-import if you trust it.",
            param_hint="--model",
        )


def final_estimator(name: str, task: str, seed: int) -> Any:
    """Return the unfitted estimator, None for the linear default.

    Parameters
    ----------
    name : "linear", "boosted", "forest", or the import path of a scikit-learn estimator.
    task : "regression" or "classification".
    seed : of every random choice.
    """
    if name == "linear":
        return None
    from sklearn import ensemble

    kind = "Classifier" if task == "classification" else "Regressor"
    if name == "boosted":
        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=seed)
    if name == "forest":
        return getattr(ensemble, f"RandomForest{kind}")(n_estimators=300, random_state=seed)
    return _imported(name, task)


def _imported(path: str, task: str) -> Any:
    from sklearn.base import is_classifier, is_regressor

    module, _, name = path.rpartition(".")
    try:
        made = getattr(import_module(module), name)()
    except (ImportError, AttributeError, TypeError) as error:
        raise click.BadParameter(
            f"{path!r} cannot be imported and made without arguments ({error}).",
            param_hint="--model",
        ) from None
    if not (is_classifier(made) if task == "classification" else is_regressor(made)):
        raise click.BadParameter(
            f"{path!r} is no scikit-learn estimator for {task}.", param_hint="--model"
        )
    return made
