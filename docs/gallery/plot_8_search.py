"""
Minimise over subsets, without a relaxation
===========================================

Some functions of a subset cannot be differentiated, or cannot be given half an item. The exact
:meth:`Subset.log_prob <khot.Subset.log_prob>` then gives the score-function gradient: here it finds 10 of 100 sensors
whose nearest distances to 200 places are smallest together.
"""

import matplotlib.pyplot as plt
import torch

import khot

torch.manual_seed(0)
sensors, places = torch.rand(100, 2), torch.rand(200, 2)
distances = torch.cdist(places, sensors)


def cost(subsets):
    """Mean distance from a place to the nearest chosen sensor, for k-hot vectors (draws, 100)."""
    return torch.where(subsets[:, None].bool(), distances, 9.0).amin(-1).mean(-1)


logits = torch.zeros(100, requires_grad=True)
optimizer = torch.optim.Adam([logits], lr=0.1)
history = []
for _ in range(300):
    law = khot.Subset(logits, k=10)
    drawn = law.sample((64,))
    costs = cost(drawn)
    loss = ((costs - costs.mean()) * law.log_prob(drawn)).mean()  # the mean cost is the baseline
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(costs.mean().item())

# %%
# The most probable subset, against the best of as many random ones as were tried:

best = khot.Subset(logits.detach(), 10).mode
random = khot.Subset(torch.zeros(100), 10).sample((64 * 300,))
print(f"found {cost(best[None]).item():.4f}, best of {len(random):,} random subsets {cost(random).min():.4f}")

fig, (curve, plane) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
curve.plot(history)
curve.set(xlabel="step", ylabel="mean cost of a draw")
plane.scatter(*places.T, s=4, color="#cccccc")
plane.scatter(*sensors.T, s=25, facecolors="none", edgecolors="#4c78a8")
plane.scatter(*sensors[best.bool()].T, s=60, color="#f58518")
plane.set(xticks=[], yticks=[], aspect="equal")
plt.show()
