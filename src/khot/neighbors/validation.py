"""Accuracy of held-out rows, measured after an epoch."""

import math
from dataclasses import dataclass, field

import numpy as np
from torch import nn

from khot._estimators.encoding import encode_array
from khot._estimators.scaling import Scaling
from khot.neighbors import votes
from khot.neighbors.search import nearest


@dataclass(frozen=True)
class Validation:
    """Accuracy of held-out rows, with training rows as references."""

    inputs: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    references: np.ndarray = field(repr=False)
    reference_labels: np.ndarray = field(repr=False)
    scaling: Scaling = field(repr=False)
    k: int

    def __call__(self, module: nn.Module) -> dict[str, float]:
        queries, references = (encode_array(module, rows, self.scaling) for rows in (self.inputs, self.references))
        if not (queries.isfinite().all() and references.isfinite().all()):
            return {"accuracy": math.nan}
        distances, indices = nearest(queries, references, min(self.k, len(references)))
        classes = max(self.labels.max(), self.reference_labels.max()) + 1
        predictions = votes.winners(self.reference_labels[indices.numpy()], distances.numpy(), classes)
        return {"accuracy": float((predictions == self.labels).mean())}
