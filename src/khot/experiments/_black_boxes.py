"""Sentiment models that are explained."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from khot.explain.fidelity import gradient_norms
from khot.explain.networks import word_vectors
from khot.training import Adam, RMSprop, Run, Settings, Step, fit

_ROWS = 500  # rows of a forward pass
_TOGETHER = 64  # sequences in a batch of an LSTM


class WordNetwork(nn.Sequential):
    """Network from tokens (b, length) to two logits: a convolution over three words, and the maximum over the text."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__(
            *[word_vectors(vocabulary, 50), nn.Dropout(0.2), _Transposed(), nn.Conv1d(50, 250, 3), nn.ReLU()],
            *[nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(250, 250), nn.Dropout(0.2), nn.ReLU()],
            nn.Linear(250, 2),
        )


class _Transposed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


class SentenceNetwork(nn.Module):
    """Network from sentences (b, sentences, length) to two logits: bidirectional LSTMs over words and over sentences.

    Sentences without words are skipped.
    """

    def __init__(self, vocabulary: int, embedding: int = 100, units: int = 100) -> None:
        super().__init__()
        self.embedding = word_vectors(vocabulary, embedding)
        self.words = _BothWays(embedding, units)
        self.sentences = _BothWays(2 * units, units)
        self.head = nn.Linear(2 * units, 2)

    def forward(self, codes: Tensor) -> Tensor:
        lengths = (codes != 0).sum(-1)
        present = lengths > 0
        features = self.embedding.weight.new_zeros(*codes.shape[:2], self.head.in_features)
        if present.any():
            inside = self.embedding(codes[present][:, : int(lengths.max())])
            features = features.masked_scatter(present.unsqueeze(-1), self.words(inside, lengths[present]))
        order = present.byte().argsort(dim=1, descending=True, stable=True).unsqueeze(-1)
        return self.head(self.sentences(features.take_along_dim(order, 1), present.sum(1).clamp(min=1)))


class _BothWays(nn.Module):
    """Bidirectional LSTM from sequences (b, length, features) to the last states (b, 2 units).

    Sequences of similar length are processed together, which is faster in torch than packed sequences.
    """

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.onwards = nn.LSTM(features, units, batch_first=True)
        self.backwards = nn.LSTM(features, units, batch_first=True)

    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        order = lengths.argsort()
        ends = [self._ends(inputs[part], lengths[part]) for part in order.split(_TOGETHER)]
        return torch.cat(ends)[order.argsort()]

    def _ends(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        inputs, last = inputs[:, : int(lengths.max())], lengths - 1
        rows = torch.arange(len(inputs))
        reverse = (last[:, None] - torch.arange(inputs.shape[1])).clamp(min=0)
        both = self.onwards(inputs)[0], self.backwards(inputs[rows[:, None], reverse])[0]
        return torch.cat([states[rows, last] for states in both], -1)


@dataclass(frozen=True)
class _Accuracy:
    inputs: NDArray[np.int64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)

    def __call__(self, module: nn.Module) -> dict[str, float]:
        return {"accuracy": float((predict(module, self.inputs).argmax(1) == self.labels).mean())}


def train(
    network: nn.Module,
    inputs: NDArray[np.int64],
    labels: NDArray[np.int64],
    random_state: int,
    folder: Path,
    epochs: int = 5,
) -> Run:
    """Train on nine tenths of the reviews, and keep the weights of the epoch that is best on the rest."""
    order = np.random.RandomState(random_state).permutation(len(inputs))
    held, kept = np.split(order, [len(order) // 10])
    words = isinstance(network, WordNetwork)
    settings = Settings(
        epochs=epochs,
        batch_size=40 if words else 100,
        learning_rate=1e-3,
        optimizer=Adam() if words else RMSprop(),
        monitor="accuracy",
        maximize=True,
        patience=1,
        random_state=random_state,
    )
    validate = _Accuracy(inputs[held], labels[held])
    return fit(network, _loss, (inputs[kept], labels[kept]), settings, validate=validate, folder=folder, resume=True)


def predict(network: nn.Module, inputs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Probabilities (n, 2) of the classes."""
    network.eval()
    with torch.no_grad():
        pieces = [torch.from_numpy(np.ascontiguousarray(inputs[i : i + _ROWS])) for i in range(0, len(inputs), _ROWS)]
        return torch.cat([network(piece).softmax(-1) for piece in pieces]).numpy()


def gradient_scores(network: nn.Module, inputs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Norms of the gradient of the network's class in each item (n, items): a word, or all words of a sentence."""
    words = isinstance(network, WordNetwork)
    layer, scores = network[0] if words else network.embedding, np.zeros(inputs.shape[:2], np.float32)
    for start in range(0, len(inputs), _ROWS):
        part = inputs[start : start + _ROWS]
        norms = gradient_norms(network, torch.from_numpy(part), layer)  # pyright: ignore[reportArgumentType]
        if words:
            scores[start : start + _ROWS] = norms
        else:  # of sentences with words, in their order
            scores[start : start + _ROWS][(part != 0).any(-1)] = np.linalg.norm(norms, axis=1)
    return scores


def _loss(module: nn.Module, batch: tuple[Tensor, Tensor], step: Step) -> Tensor:
    tokens, labels = batch
    return functional.cross_entropy(module(tokens), labels)
