"""
Draw subsets, and compare them with their exact probabilities
=============================================================

Ten thousand hard samples of 2 of 4 items, counted, against the exact law of the subset. A hard sample is the top k of
the keys, so it follows the law at every temperature; only its gradient depends on the temperature.
"""

import matplotlib.pyplot as plt
import torch

import khot

logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
seed = torch.Generator().manual_seed(0)
samples = khot.sample_subset(logits, k=2, temperature=0.5, hard=True, sample_shape=(10_000,), generator=seed)

# %%
# The law lists its support, and gives each subset its probability:

law = khot.Subset(logits, k=2)
subsets = law.enumerate_support()
exact = law.log_prob(subsets).exp()
share = (samples[:, None] == subsets).all(-1).float().mean(0)
print(f"total variation distance: {(share - exact).abs().sum() / 2:.4f}")

names = ["{" + ", ".join(str(i + 1) for i in subset.nonzero().flatten().tolist()) + "}" for subset in subsets]
plt.bar(names, share, color="#f5b678", label="10,000 samples")
plt.plot(names, exact, "_", color="black", markersize=40, label="exact p(S|w)")
plt.ylabel("probability")
plt.legend()
plt.show()

# %%
# The inclusion probabilities, which are exact too, are the means of the samples:

print("exact: ", law.inclusion_probs.numpy().round(3))
print("drawn: ", samples.mean(0).numpy().round(3))
