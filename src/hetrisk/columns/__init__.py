"""What single columns hold: dates, words, Parquet's own columns; below blocks and tables.

Rows in memory, in files and on a cluster are read by the same rules, and so are tables.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
