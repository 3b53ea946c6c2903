"""
Train a layer that selects features
===================================

A regression on 30 features of which only 4 matter. :class:`~khot.nn.SubsetSampler` chooses 4 features; its logits and
the linear model behind it are trained together, while the temperature falls.
"""

import matplotlib.pyplot as plt
import torch

import khot
from khot.schedules import Exponential

torch.manual_seed(0)
relevant = [3, 11, 17, 26]
inputs = torch.randn(2000, 30)
targets = inputs[:, relevant] @ torch.tensor([1.0, -1.5, 2.0, 1.0]) + 0.1 * torch.randn(2000)

logits = torch.zeros(30, requires_grad=True)
sampler = khot.nn.SubsetSampler(k=4, temperature=Exponential(2.0, 0.2, steps=400))
model = torch.nn.Linear(30, 1)
optimizer = torch.optim.Adam([logits, *model.parameters()], lr=0.05)

history = []
for step in range(400):
    sampler.anneal(step)
    rows = torch.randint(2000, (100,))
    chosen = sampler(logits.expand(100, -1))  # a sample of its own for each row
    loss = (model(inputs[rows] * chosen).squeeze(-1) - targets[rows]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(khot.Subset(logits.detach(), 4).inclusion_probs)

# %%
# Evaluation takes the four largest logits:

sampler.eval()
print("chosen:  ", sampler(logits.detach()).nonzero().flatten().tolist())
print("relevant:", relevant)

# %%
# How likely each feature was to be chosen, during the training:

history = torch.stack(history)
plt.plot(history, color="#cccccc", linewidth=0.8)
plt.plot(history[:, relevant], color="#f58518", label=[f"feature {i}" for i in relevant])
plt.xlabel("step")
plt.ylabel("inclusion probability")
plt.show()
