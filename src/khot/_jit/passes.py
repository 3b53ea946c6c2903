"""Passes over one array: extremes, NaN, number of items above a threshold, n-th largest item."""

import math

import numpy as np

from khot._jit.compiler import fma, no_nan, reorder
from khot._jit.vector_math import larger, smaller


@no_nan
def largest(x):
    """Largest item of an array; -inf if it is empty."""
    top = x.dtype.type(-np.inf)
    for i in range(x.shape[0]):
        top = larger(top, x[i])
    return top


@reorder
def has_nan(row, start, stop):
    """Whether an item is NaN."""
    zero, one = row.dtype.type(0), row.dtype.type(1)
    count = zero  # in the dtype of the row, which keeps the vector lanes full
    for i in range(start, stop):
        count += zero if row[i] == row[i] else one
    return count > zero


@reorder
def count_above(values, threshold):
    """Number of items above a threshold, exact up to 2^24."""
    zero, one = values.dtype.type(0), values.dtype.type(1)
    count = zero
    for i in range(values.shape[0]):
        count += one if values[i] > threshold else zero
    return int(count)


@no_nan
def smallest(row):
    """Smallest present item."""
    absent, none = row.dtype.type(-math.inf), row.dtype.type(math.inf)
    low = none
    for i in range(row.shape[0]):  # vectorised, unlike the loop below
        low = smaller(low, row[i])
    if low > absent:
        return low
    low = none
    for i in range(row.shape[0]):
        low = smaller(low, row[i] if row[i] > absent else none)
    return low


@fma
def nth_largest(values, n):
    """N-th largest item (n >= 1) of an array, by Hoare's selection, which reorders the array."""
    low, high, place = 0, values.shape[0] - 1, n - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]
