"""
Bias and variance of a gradient
===============================

How far is the mean gradient of relaxed samples from the true one, and how much does a single draw scatter? With five
items, enumeration gives the true gradient of E[f(S)] to compare with.
"""

import matplotlib.pyplot as plt
import torch

import khot

logits = torch.tensor([0.6, 0.3, 0.0, -0.3, -0.6])
values = torch.tensor([0.2, 1.0, -0.5, 0.8, 0.4])
seed = torch.Generator().manual_seed(0)


def objective(k_hot):
    """Any function of a k-hot vector that can be differentiated."""
    return (k_hot @ values - 1).square()


# %%
# The exact gradient, through the probabilities of all ten subsets:

leaf = logits.clone().requires_grad_()
law = khot.Subset(leaf, k=2)
subsets = law.enumerate_support()
expectation = (law.log_prob(subsets).exp() * objective(subsets)).sum()
exact = torch.autograd.grad(expectation, leaf)[0]

# %%
# The estimates: rows of the same logits, so that the gradient of each row is that of one draw.

temperatures = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
bias, deviation = [], []
for temperature in temperatures:
    rows = logits.expand(20_000, -1).clone().requires_grad_()
    relaxed = khot.sample_subset(rows, 2, temperature, generator=seed)
    draws = torch.autograd.grad(objective(relaxed).sum(), rows)[0]
    bias.append((draws.mean(0) - exact).norm() / exact.norm())
    deviation.append((draws - draws.mean(0)).square().sum(-1).mean().sqrt() / exact.norm())

plt.loglog(temperatures, bias, "o-", label="bias of the mean")
plt.loglog(temperatures, deviation, "o-", label="deviation of one draw")
plt.xlabel("temperature")
plt.ylabel("relative to the norm of the exact gradient")
plt.legend()
plt.show()
