"""Fitted models with known attributes: what the page says must not hang on a search."""

import numpy as np

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.core.drift.reference import measure
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.result import (
    EnvironmentScore,
    Evidence,
    HistoryRecord,
    ReachCurve,
    SourceRecord,
)
from hetrisk.estimators.environments import EnvironmentSummary

HOSTILE = (
    "<script>document.title='pwned'</script>",
    '"><img src=x onerror="document.title=\'pwned\'">',
    "</style></title><svg onload=document.title='pwned'>",
    "'; document.title='pwned'; //",
    "{{ 7 * 7 }} {% raw %}",
    "long " + "x" * 10_000 + " one",
    "long " + "x" * 10_000 + " two",
    "long " + "x" * 10_001 + " one",
    "emoji 👩🏽‍🔬🧪",
    "ميزة عربية",
    "\u202egnp.exe",
    "nul \x00 and newline \n and tab \t",
    "lone \ud800 surrogate",
    "&amp; &lt;b&gt;",
    "",
    "]]><!--",
)


def evidence(d, rng):
    return Evidence(
        price=rng.uniform(0, 0.5, d),
        margin=np.r_[np.linspace(3, 0.5, min(d, 2)), rng.uniform(0, 0.2, d)][:d],
        regret=rng.uniform(0, 1, d),
        p_value=np.where(np.arange(d) < 2, 1e-5, 0.5),
        assumed=np.zeros(d, dtype=bool),
        reason=tuple(f"reason {j}" for j in range(d)),
    )


def curve(d, invariant, unit):
    """Plain ERM rises with the reach; the model that leaves two out starts higher and stays."""
    reach = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0])
    erm = np.sqrt(0.2**2 + (0.15 * reach) ** 2)
    error = np.sqrt(0.22**2 + (0.01 * reach) ** 2) if invariant else erm
    left = tuple(range(min(d, 2))) if invariant else ()
    return ReachCurve(
        reach=reach,
        error=error,
        error_erm=erm,
        low=0.95 * error,
        high=1.05 * error,
        low_erm=0.9 * erm,
        high_erm=1.15 * erm,
        left_out=((),) + (left,) * 6,
        unit=unit,
        break_even=float(np.sqrt((0.22**2 - 0.2**2) / (0.15**2 - 0.01**2))) if invariant else 0.0,
    )


def sources(d):
    return (
        SourceRecord("site", "named", 3, 1e-6, 5.2, 0, True, "The sites differ."),
        SourceRecord("weekday", "hinted", 7, 0.4, 0.3, None, False, "Nothing changes along it."),
        SourceRecord("hidden mixture", "hidden", 2, 0.01, 2.6, d - 1, False, "Two populations."),
    )


def environments(d, K, C, rng, risk_name):
    coef = rng.normal(size=(K, d) if C <= 2 else (K, C, d))
    return EnvironmentSummary(
        weight=np.arange(K, 0, -1) / np.arange(K, 0, -1).sum(),
        coef=coef,
        coef_error=0.1 + 0 * coef,
        intercept=np.zeros(coef.shape[:-1]),
        risk=0.2 + 0.01 * np.arange(K),
        risk_erm=0.1 + 0.3 * np.arange(K),
        risk_name=risk_name,
        feature_mean=rng.normal(size=(K, d)),
        feature_sd=1 + 0 * rng.uniform(size=(K, d)),
        distance=np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float),
    )


def fitted(
    names=None,
    d=6,
    K=2,
    classes=None,
    verdict="invariant",
    final_estimator=None,
    labels=None,
    **params,
):
    """Return an estimator with every fitted attribute the page reads, two features left out."""
    rng = np.random.default_rng(0)
    d = d if names is None else len(names)
    make = HRMRegressor if classes is None else HRMClassifier
    model = make(final_estimator=final_estimator, random_state=0, **params)
    model.n_features_in_ = d
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    if classes is not None:
        model.classes_ = np.asarray(classes, dtype=object)
    model.support_ = (np.arange(d) >= 2) | (verdict != "invariant")
    model.gates_ = model.support_.astype(float)
    model.evidence_ = evidence(d, rng)
    model.reference_ = measure(Held(Rows(rng.normal(size=(90, d)), np.zeros(90), np.ones(90))))
    invariant = verdict == "invariant"
    unit = "RMSE" if classes is None else "root Brier score"
    model.reach_curve_ = None if verdict == "unsearched" else curve(d, invariant, unit)
    model.break_even_ = model.reach_curve_.break_even if invariant else np.inf
    model.stability_ = np.where(model.support_, 0.04, 0.94)
    model.n_resamples_ = 50
    model.sources_ = () if verdict == "unsearched" else sources(d)
    model.environment_labels_ = labels
    model.leave_one_out_ = tuple(
        EnvironmentScore(f"e{k}", 30.0, 0.3, 0.3 + 0.1 * k, 0.29) for k in range(K if K > 2 else 0)
    )
    model.verdict_, model.verdict_reason_ = verdict, "Because the numbers say so."
    model.environment_summary_ = environments(
        d, K, len(classes or ()), rng, "RMSE" if classes is None else "error rate"
    )
    model._environment_proba = np.eye(K)[np.arange(90) % K]
    model._carried = None
    model.history_ = [
        HistoryRecord(
            round=r,
            n_environments=K,
            score=2.0 / r,
            score_name="Expected error",
            support=tuple(bool(flag) for flag in np.arange(d) >= r),
            chosen=r == 2,
            log_likelihood=-3.0 + 0.5 * r,
        )
        for r in (1, 2, 3)
    ]
    model.n_rounds_ = 3
    model.final_estimator_ = final_estimator
    return model
