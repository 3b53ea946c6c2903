"""
A map of digits that takes new digits, too
==========================================

:class:`~khot.embed.SubsetSNE` learns an encoder into two dimensions that keeps the neighbours of every row, without
labels. The encoder then places rows that it has never seen.
"""

import matplotlib.pyplot as plt

import khot
from khot.embed import TUNED, SubsetSNE, quality

digits = khot.datasets.load("digits")
rows, others = (part.inputs.reshape(-1, 64) for part in (digits.train, digits.test))

model = SubsetSNE(**TUNED, batch_size=150, epochs=40, random_state=0).fit(rows)
seen, new = model.transform(rows), model.transform(others)

print(f"trustworthiness of the new rows: {quality.trustworthiness(others, new):.3f}")
error = quality.knn_error(seen, digits.train.labels, new, digits.test.labels)
print(f"new rows whose nearest training row has another label: {error:.1f}%")

# %%
# Training digits are small dots, new digits are large ones; the colours are their labels.

plt.figure(figsize=(7, 5))
plt.scatter(*seen.T, c=digits.train.labels, s=4, cmap="tab10", alpha=0.5)
dots = plt.scatter(*new.T, c=digits.test.labels, s=22, cmap="tab10", edgecolors="white", linewidths=0.5)
plt.legend(*dots.legend_elements(), title="digit", fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
plt.axis("off")
plt.show()
