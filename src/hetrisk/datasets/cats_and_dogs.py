"""The paper's toy table: cats and dogs, their background, and who took the photograph.

Environments e1 to e4 each tie the background and the signature to the class in one of the four
possible ways; e5 mixes e1 and e2 (90 % and 10 %), e6 mixes e3 and e4. Labels e5 and e6 show only
that the signature is not to be trusted; the four environments hidden in them show that the
background is not either.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.datasets.checks import RandomState, at_least, fraction, one_of

# (background, signature) of a dog, as 0/1 with grass = 1 and Eric = 1; a cat has the opposite.
DOG = {"e1": (1, 1), "e2": (0, 0), "e3": (1, 0), "e4": (0, 1)}
MIXTURE = {"e5": ("e1", "e2"), "e6": ("e3", "e4")}
ENVIRONMENTS = (*DOG, *MIXTURE)
FEATURES = ("animal=dog", "background=grass", "signature=Eric")
MAJORITY = 0.9


def make_cats_and_dogs(
    n_samples: int,
    environment: str = "e5",
    noise: float = 0.0,
    random_state: RandomState = None,
) -> tuple[FloatArray, IntArray]:
    """Draw photographs of one environment.

    Parameters
    ----------
    n_samples : number of rows.
    environment : ``"e1"`` to ``"e6"``.
    noise : probability that the animal is misread; 0 is the paper's table, where the animal
        decides the class, and anything above makes the other two features tempting.
    random_state : seed or `numpy.random.Generator`.

    Returns
    -------
    X : (n_samples, 3) of 0 and 1: animal is a dog, background is grass, signature is Eric's.
    y : (n_samples,) 0 for cats, 1 for dogs, equally likely.
    """
    at_least("n_samples", n_samples, 1)
    one_of("environment", environment, ENVIRONMENTS)
    fraction("noise", noise)
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, 2, n_samples)
    major, minor = MIXTURE.get(environment, (environment, environment))
    is_major = rng.random(n_samples) < MAJORITY
    dog = np.where(is_major[:, None], DOG[major], DOG[minor])
    animal = np.where(rng.random(n_samples) < noise, 1 - y, y)
    context = np.where(y[:, None] == 1, dog, 1 - dog)
    return np.column_stack([animal, context]).astype(np.float64), y
