"""Bias and standard deviation of estimators of a gradient that enumeration gives exactly."""

import torch
from matplotlib import pyplot as plt

import khot
from khot._relaxations import RELAXATIONS, find

K, DRAWS = 2, 100_000
logits = torch.tensor([0.6, 0.3, 0.0, -0.3, -0.6])
values = torch.tensor([0.2, 1.0, -0.5, 0.8, 0.4])
temperatures = [0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0]


def objective(khot_vectors):
    """A function of the subset that is not linear in its k-hot vector."""
    return (khot_vectors @ values - 1).square()


def per_draw(estimate):
    """Gradient of each draw (draws, n) of a function from logits (draws, n) to numbers (draws,)."""
    rows = logits.expand(DRAWS, -1).clone().requires_grad_()
    return torch.autograd.grad(estimate(rows).sum(), rows)[0]


leaf = logits.clone().requires_grad_()
law = khot.Subset(leaf, K)
subsets = law.enumerate_support()
exact = torch.autograd.grad((law.log_prob(subsets).exp() * objective(subsets)).sum(), leaf)[0]

generator = torch.Generator().manual_seed(0)
fig, axes = plt.subplots(2, 2, figsize=(8, 5.2), sharex=True, sharey="row")
for column, hard in zip(axes.T, (False, True), strict=True):
    for i, name in enumerate(RELAXATIONS):
        errors = []
        for t in temperatures:
            grads = per_draw(
                lambda rows, t=t, name=name, hard=hard: objective(
                    khot.sample_subset(rows, K, t, relaxation=find(name), hard=hard, generator=generator)
                )
            )
            errors.append([(grads.mean(0) - exact).norm(), (grads - grads.mean(0)).square().sum(-1).mean().sqrt()])
        for ax, error in zip(column, torch.tensor(errors).T / exact.norm(), strict=True):
            ax.loglog(temperatures, error, marker="o", markersize=3, color=f"C{i}", label=name)
    column[0].set_title("straight-through samples (hard=True)" if hard else "relaxed samples")
    column[1].set_xlabel("temperature")

with torch.no_grad():
    chosen = khot.Subset(logits, K).sample((DRAWS,), generator)
score = per_draw(lambda rows: objective(chosen) * khot.Subset(rows, K).log_prob(chosen))
deviation = (score - score.mean(0)).square().sum(-1).mean().sqrt() / exact.norm()
for ax in axes[1]:
    ax.axhline(deviation, color="#888888", linestyle=":", label="score function (unbiased)")
axes[0, 0].set_ylabel("bias / norm of the gradient")
axes[1, 0].set_ylabel("deviation of a draw / norm")
axes[1, 0].legend(fontsize=7)
