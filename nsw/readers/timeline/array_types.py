"""Arrays of whole numbers and of chosen rows, as type hints name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    IntArray: TypeAlias = npt.NDArray[np.int64]
    Chosen: TypeAlias = npt.NDArray[np.bool_]
