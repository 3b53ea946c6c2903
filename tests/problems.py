"""Random rows of every kind that has broken something, for tests and benchmarks of accuracy."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

U = 6e-8


class Problem(NamedTuple):
    keys: np.ndarray  # (n,), float32 or float64
    k: int
    temperature: float
    kind: str

    @property
    def range(self) -> float:
        present = self.keys[self.keys > -np.inf].astype(float)
        return float(np.ptp(present))

    def promised(self) -> float:
        """The largest error that the documentation allows."""
        if self.keys.dtype == np.float64:
            return 1e-12
        if self.temperature >= 0.7:
            return max(2e-6, 8 * U * (self.range / self.temperature + self.k))
        return max(2e-6, 4 * U * self.range / self.temperature)


KINDS = {
    "gumbel": lambda rng, n: rng.gumbel(size=n),
    "normal": lambda rng, n: 5 * rng.normal(size=n),
    "wide": lambda rng, n: rng.uniform(-25, 25, size=n),
    "integer": lambda rng, n: rng.integers(-4, 4, size=n).astype(float),
    "equal": lambda rng, n: np.full(n, rng.normal()),
    "coarse": lambda rng, n: rng.normal(size=n).astype(np.float16).astype(float),
    "tied leaders": lambda rng, n: np.r_[25.0, 25.0, rng.uniform(-25, -10, size=n)][:n],
    "tiny spread": lambda rng, n: 1e-3 * rng.normal(size=n),
    "outliers": lambda rng, n: rng.gumbel(size=n) + 35 * (rng.random(n) < 0.01),
    "masked": lambda rng, n: np.where(rng.random(n) < 0.5, -np.inf, rng.gumbel(size=n)),
    "huge gaps": lambda rng, n: rng.gumbel(size=n) + 1e3 * rng.integers(0, 3, size=n),
}


def problems(count: int, seed: int, longest: int, most: float) -> Iterator[Problem]:
    """Log-uniform n up to `longest` and k up to n with n k <= `most`, temperatures from 0.05 to 64, both dtypes."""
    rng = np.random.default_rng(seed)
    while count > 0:
        kind = list(KINDS)[int(rng.integers(len(KINDS)))]
        n = int(np.exp(rng.uniform(0, np.log(longest))))
        keys = KINDS[kind](rng, n).astype(np.float32 if rng.random() < 0.6 else np.float64)
        most_k = min(int((keys > -np.inf).sum()), int(most / n))
        temperature = float(np.exp(rng.uniform(np.log(0.05), np.log(64))))
        if most_k == 0 or (kind == "huge gaps" and temperature < 0.7):  # nothing is promised there
            continue
        count -= 1
        yield Problem(keys, int(np.exp(rng.uniform(0, np.log(most_k)))), temperature, kind)
