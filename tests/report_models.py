"""Fitted models with known attributes: what the page says must not hang on a search."""

import numpy as np

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.core.result import Evidence
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
    instability = np.r_[np.linspace(3, 0.5, min(d, 2)), rng.uniform(0, 0.2, d)][:d]
    return Evidence(
        instability=instability,
        instability_error=0.1 * instability,
        cost=rng.uniform(0, 0.5, d),
        saving=rng.uniform(-0.1, 0.3, d),
        p_value=np.where(np.arange(d) < 2, 1e-5, 0.5),
        reason=tuple(f"reason {j}" for j in range(d)),
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


def fitted(names=None, d=6, K=2, classes=None, verdict="invariant", final_estimator=None, **params):
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
    model.instability_ = model.evidence_.instability
    model.verdict_, model.verdict_reason_ = verdict, "Because the numbers say so."
    model.environment_summary_ = environments(
        d, K, len(classes or ()), rng, "RMSE" if classes is None else "error rate"
    )
    model._environment_proba = np.eye(K)[np.arange(90) % K]
    model.history_ = [
        {
            "round": r,
            "n_environments": K,
            "log_likelihood": -3.0 + 0.5 * r,
            "objective": 2.0 / r,
            "support": (np.arange(d) >= r).tolist(),
            "chosen": r == 2,
        }
        for r in (1, 2, 3)
    ]
    model.n_rounds_ = 3
    model.final_estimator_ = final_estimator
    return model
