"""
Classify digits, and show the neighbours that voted
===================================================

:class:`~khot.neighbors.SubsetKNNClassifier` trains a small convolutional network so that the nearest training rows of
a digit are of its class. Each prediction comes with the rows that it rests on.
"""

import matplotlib.pyplot as plt

import khot
from khot.neighbors import SubsetKNNClassifier

digits = khot.datasets.load("digits")
model = SubsetKNNClassifier(n_neighbors=9, encoder="convnet", epochs=2, random_state=0)
model.fit(digits.train.inputs, digits.train.labels)
print(f"accuracy on {len(digits.test)} test rows: {model.score(digits.test.inputs, digits.test.labels):.3f}")

# %%
# Six test digits on the left, each with its nine nearest training digits; wrong votes are red.

queries = digits.test.inputs[:6]
predicted = model.predict(queries)
distances, rows = model.kneighbors(queries)

fig, axes = plt.subplots(6, 10, figsize=(8, 5))
for query, label, near, line in zip(queries, predicted, rows, axes, strict=True):
    line[0].imshow(query, cmap="Greys")
    line[0].set_ylabel(f"→ {label}", rotation=0, labelpad=14, va="center")
    for ax, row in zip(line[1:], near, strict=True):
        ax.imshow(digits.train.inputs[row], cmap="Oranges" if digits.train.labels[row] == label else "Reds")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
plt.show()
