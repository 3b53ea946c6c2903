"""How far numbers spread, without overflow, and not less than rounding lets them."""

import numpy as np

_ROUNDING = 10 * np.finfo(np.float64).eps  # relative to the largest number


def mean_and_scale(values: np.ndarray, axis: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of finite numbers; the latter is 1 where they are constant up to rounding.

    >>> mean_and_scale(np.array([[1e200, 0.1], [3e200, 0.1]]), axis=0)
    (array([2.e+200, 1.e-001]), array([1.e+200, 1.e+000]))
    """
    unit = np.ldexp(1.0, np.frexp(np.abs(values).max(axis))[1] - 1)  # a power of two, so that nothing is rounded
    parts = values / unit
    constant = parts.max(axis) - parts.min(axis) <= _ROUNDING * np.abs(parts).max(axis)
    scale = parts.std(axis) * unit
    return parts.mean(axis) * unit, np.where(constant | (scale == 0), 1.0, scale)
