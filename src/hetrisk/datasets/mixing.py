"""Tasks put together from environments, plain or with their columns mixed by a rotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION, Sample, ShiftTask, pool

INVARIANT, SPURIOUS, NOISE = "cause", "shortcut", "noise"


def rotation(rng: np.random.Generator, d: int) -> FloatArray:
    """(d, d) rotation (or reflection) drawn evenly: the QR factor of a normal matrix."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))  # without the signs the draw is not even


def numbered(kinds: Sequence[str]) -> tuple[str, ...]:
    """Name columns by kind and rank within the kind: phi1, phi2, vb1, psi1, ..."""
    return tuple(f"{kind}{1 + list(kinds[:i]).count(kind)}" for i, kind in enumerate(kinds))


def mixed_task(
    name: str,
    train: Mapping[str, Sample],
    test: Mapping[str, Sample],
    kinds: Sequence[str],
    setting: Mapping[str, Any],
    rng: np.random.Generator,
    *,
    labels: bool = False,
    rotated: bool = False,
) -> ShiftTask:
    """Pool the training environments; rotate all columns if asked to.

    Parameters
    ----------
    name, setting : of the task.
    train, test : environment name -> rows.
    kinds : (d,) what each column is: "cause" columns are the invariant ones, whether a "noise"
        column is kept makes no difference. Rotated, every column is a mixture of all kinds and
        no set of columns is right: ``invariant`` is None.
    rng : of the rotation and of the order of the rows.
    labels : whether the target is a class.
    rotated : whether to mix the columns.
    """
    d = len(kinds)
    turn = rotation(rng, d) if rotated else np.eye(d)

    def turned(sample: Sample) -> Sample:
        return Sample(sample.X @ turn, sample.y)

    which = np.asarray(kinds)
    return ShiftTask(
        name=name,
        task_type=CLASSIFICATION if labels else REGRESSION,
        train=pool({label: turned(sample) for label, sample in train.items()}, rng),
        test={label: turned(sample) for label, sample in test.items()},
        feature_names=tuple(f"x{i + 1}" for i in range(d)) if rotated else numbered(kinds),
        feature_groups=np.arange(d),
        environment_names=tuple(train),
        invariant=None if rotated else which == INVARIANT,
        identifiable=None if rotated else which != NOISE,
        setting=setting,
    )
