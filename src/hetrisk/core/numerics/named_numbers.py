"""What the named numbers of `core` are.

A number that decides is a plain constant, with its reason written where it stands. Others say that
they do not decide:

* a floor keeps arithmetic finite: it stands in `hetrisk.core.numerics.floors`;
* ``NAME: Budget[int] = ...`` bounds the work, or how finely something is looked at: more of it
  costs time and changes little;
* ``NAME: Constant[int] = ...`` leaves nothing to choose: mathematics, or what people are shown.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

T = TypeVar("T")
Budget = Annotated[T, "bounds work; more changes little"]
Constant = Annotated[T, "nothing to choose"]
