"""
A sample of a stream
====================

Log lines come in by the hundred thousand, slow requests count more than fast ones, and only a thousand can be kept.
A :class:`khot.reservoir.Reservoir` keeps a weighted sample of all lines seen, and estimates totals over all of them.
Three readers of a third each, merged, have the same sample as one.
"""

import matplotlib.pyplot as plt
import numpy as np

from khot.reservoir import Reservoir

random = np.random.default_rng(0)
n = 300_000
seconds = random.lognormal(-1.0, 1.5, n)  # the weights
failed = random.random(n) < 0.02 + 0.1 * (seconds > 5)

whole = Reservoir(k=1000, seed=0)
whole.extend(None, weights=seconds)  # None: the sample holds the numbers of the lines

# %%
# Three readers, in any order. Each says with which line it starts.
readers = []
for start in (100_000, 0, 200_000):
    reader = Reservoir(k=1000, seed=0, start=start)
    reader.extend(None, weights=seconds[start : start + 100_000])
    readers.append(reader)
merged = readers[0].merge(readers[1], readers[2])
print("the same sample:", (merged.ids == whole.ids).all())

# %%
# How many requests failed, and how many seconds they took, from the sample alone.
values = np.stack([failed, failed * seconds], axis=1)
total = whole.total(values[whole.ids])
for name, estimate, error, truth in zip(("requests", "seconds"), *total, values.sum(0), strict=True):
    print(f"failed {name}: {estimate:,.0f} ± {error:,.0f}, in truth {truth:,.0f}")

# %%
# Slow requests are more often in the sample: the chance of each is 1 - exp(-weight times threshold).
bins = np.geomspace(seconds.min(), seconds.max(), 40)
share = np.histogram(seconds[whole.ids], bins)[0] / np.maximum(np.histogram(seconds, bins)[0], 1)
fig, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.plot(bins, 1 - np.exp(-bins * whole.threshold), color="0.6", label="chance to be in the sample")
axis.plot(np.sqrt(bins[1:] * bins[:-1]), share, ".", label="share of the requests in the sample")
axis.set(xscale="log", xlabel="seconds of a request", ylabel="share", ylim=(-0.02, 1.02))
axis.legend(frameon=False)
plt.show()
