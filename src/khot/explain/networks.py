"""Default selectors, which score items, and predictors, which see the chosen ones; those for texts are from L2X."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def word_vectors(vocabulary: int, size: int) -> nn.Embedding:
    """An embedding that starts close to 0, where irrelevant words stay; torch's default starts with random features."""
    result = nn.Embedding(vocabulary, size)
    nn.init.uniform_(result.weight, -0.05, 0.05)
    return result


class _Packed:
    """Concatenation of the present items of rows (b, items), with a gap after each row.

    A convolution then sees zeros beyond the ends of a row, and spends no time on padding.
    """

    def __init__(self, present: Tensor) -> None:
        self.places: Tensor = functional.pad(present, (0, 1), value=True)
        filled = functional.pad(present, (0, 1))[self.places]
        self.filled: Tensor = filled.unsqueeze(1)  # (packed, 1)
        self.gaps: Tensor = (~filled).nonzero().squeeze(1)  # (b,)
        self.rows: Tensor = torch.arange(len(present), device=present.device).repeat_interleave(self.places.sum(1))

    def pack(self, values: Tensor) -> Tensor:
        """Pack values (b, items, ...) into (packed, ...)."""
        ends = values.new_zeros(len(values), 1, *values.shape[2:])
        return torch.cat([values, ends], 1)[self.places]

    def unpack(self, values: Tensor) -> Tensor:
        """Unpack values (packed,) into (b, items), with 0 for absent items."""
        return values.new_zeros(self.places.shape).masked_scatter(self.places, values)[:, :-1]

    def convolve(self, layer: nn.Conv1d, x: Tensor) -> Tensor:
        """Convolution of (packed, features) with kernels of three items, followed by a ReLU."""
        return _Convolution.apply(x, layer.weight, layer.bias, self.gaps)  # pyright: ignore[reportReturnType]

    def largest(self, x: Tensor) -> Tensor:
        """Maximum (b, features) over the items of each row of non-negative (packed, features); 0 for an empty row."""
        rows = self.rows.unsqueeze(1).expand_as(x)
        return x.new_zeros(len(self.places), x.shape[1]).scatter_reduce(0, rows, x, "amax")


class _Convolution(torch.autograd.Function):
    """Convolution and ReLU of x (packed, features), with zeros in the gaps, as matrix products without copies."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, gaps: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        before, here, after = weight.permute(2, 1, 0).contiguous()  # or else each product would copy its part
        out = torch.addmm(bias, x, here)
        out[1:].addmm_(x[:-1], before)
        out[:-1].addmm_(x[1:], after)
        out.relu_().index_fill_(0, gaps, 0.0)
        ctx.save_for_backward(x, weight, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, weight, out = ctx.saved_tensors
        before, here, after = weight.permute(2, 0, 1).contiguous()
        grad = grad * (out > 0)
        grad_x = grad @ here
        grad_x[:-1].addmm_(grad[1:], before)
        grad_x[1:].addmm_(grad[:-1], after)
        products = grad[1:].T @ x[:-1], grad.T @ x, grad[:-1].T @ x[1:]
        return grad_x, torch.stack(products, 2), grad.sum(0), None


class TokenSelector(nn.Module):
    """Tokens (b, length) with padding 0 to a logit for each, from its neighbourhood and from the whole text.

    References
    ----------
    Chen, Song, Wainwright & Jordan, "Learning to explain", ICML 2018.
    """

    def __init__(self, vocabulary: int, embedding: int = 50, width: int = 100) -> None:
        super().__init__()
        self.embedding: nn.Embedding = word_vectors(vocabulary, embedding)
        self.head: _Local = _Local(embedding, width, width, dropout=0.2)

    def forward(self, codes: Tensor) -> Tensor:
        packed = _Packed(codes != 0)
        return self.head(self.embedding(packed.pack(codes)), packed)


class SentenceSelector(nn.Module):
    """Sentences (b, sentences, length) to a logit for each, from its neighbours and from the whole text."""

    def __init__(self, vocabulary: int, embedding: int = 100, width: int = 100) -> None:
        super().__init__()
        self.sentences: _SentenceEncoder = _SentenceEncoder(vocabulary, embedding)
        self.head: _Local = _Local(self.sentences.features, width, width // 2)

    def forward(self, codes: Tensor) -> Tensor:
        packed = _Packed(torch.ones_like(codes[..., 0], dtype=torch.bool))
        return self.head(packed.pack(self.sentences(codes)), packed)


class _Local(nn.Module):
    """Features (packed, features) to logits (b, items): a convolution, then a global and a local branch."""

    def __init__(self, features: int, width: int, local: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.first: nn.Conv1d = nn.Conv1d(features, width, 3, padding=1)
        self.whole: nn.Linear = nn.Linear(width, width)
        self.second: nn.Conv1d = nn.Conv1d(width, local, 3, padding=1)
        self.third: nn.Conv1d = nn.Conv1d(local, local, 3, padding=1)
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        self.both: nn.Linear = nn.Linear(width + local, local)
        self.last: nn.Linear = nn.Linear(local, 1)

    def forward(self, x: Tensor, packed: _Packed) -> Tensor:
        x = packed.convolve(self.first, x * packed.filled)
        whole = functional.relu(self.whole(packed.largest(x)))
        x = packed.convolve(self.third, packed.convolve(self.second, x))
        x = functional.relu(self.both(self.dropout(torch.cat([x, whole[packed.rows]], 1))))
        return packed.unpack(self.last(x).squeeze(1))


class _SentenceEncoder(nn.Module):
    """Sentences (b, sentences, length) of tokens with padding 0 to features (b, sentences, features)."""

    def __init__(self, vocabulary: int, embedding: int, features: int = 250) -> None:
        super().__init__()
        self.features = features
        self.embedding: nn.Embedding = word_vectors(vocabulary, embedding)
        self.dropout: nn.Dropout = nn.Dropout(0.5)  # 0.2 in L2X, which overfits the sentences of few texts
        self.convolution: nn.Conv1d = nn.Conv1d(embedding, features, 3, padding=1)

    def forward(self, codes: Tensor) -> Tensor:
        tokens = codes.flatten(0, 1)
        packed = _Packed(tokens != 0)
        inside = self.dropout(self.embedding(packed.pack(tokens))) * packed.filled
        return packed.largest(packed.convolve(self.convolution, inside)).unflatten(0, codes.shape[:2])


class TokenPredictor(nn.Module):
    """Tokens (b, length) and a mask of them to class logits: the sum of the chosen embeddings, and two dense layers.

    L2X divides the sum by k, a constant that the dense layer can learn.
    """

    def __init__(self, vocabulary: int, classes: int, embedding: int = 50, width: int = 250) -> None:
        super().__init__()
        self.embedding: nn.Embedding = word_vectors(vocabulary, embedding)
        self.head: nn.Sequential = _dense(embedding, width, classes)

    def forward(self, codes: Tensor, mask: Tensor) -> Tensor:
        return self.head(_sum(self.embedding(codes), mask))


class SentencePredictor(nn.Module):
    """Sentences (b, sentences, length) and a mask of them to class logits. Sentences of weight 0 are not read."""

    def __init__(self, vocabulary: int, classes: int, embedding: int = 100, width: int = 250) -> None:
        super().__init__()
        self.sentences: _SentenceEncoder = _SentenceEncoder(vocabulary, embedding)
        self.head: nn.Sequential = _dense(self.sentences.features, width, classes)

    def forward(self, codes: Tensor, mask: Tensor) -> Tensor:
        return self.head(_sum(self.sentences(codes * (mask != 0).unsqueeze(-1)), mask))


class ColumnSelector(nn.Sequential):
    """Columns (b, d) to a logit for each item."""

    def __init__(self, columns: int, items: int, width: int = 100) -> None:
        super().__init__(
            *[nn.Linear(columns, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, items)]
        )


class ColumnPredictor(nn.Module):
    """Columns (b, d) and a mask of the items to class logits; column i belongs to item `group_of[i]`."""

    def __init__(self, group_of: Sequence[int], classes: int, width: int = 200) -> None:
        super().__init__()
        self.register_buffer("group_of", torch.tensor(group_of))
        self.head: nn.Sequential = nn.Sequential(
            *[nn.Linear(len(group_of), width), _BatchNorm(width), nn.ReLU()],
            *[nn.Linear(width, width), _BatchNorm(width), nn.ReLU(), nn.Linear(width, classes)],
        )

    def forward(self, codes: Tensor, mask: Tensor) -> Tensor:
        return self.head(codes * mask[:, self.group_of])  # pyright: ignore[reportArgumentType]


class _BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of (b, features, ...) that uses the running statistics for a batch of one row."""

    def _check_input_dim(self, input: Tensor) -> None:
        pass

    def forward(self, input: Tensor) -> Tensor:
        if len(input) > 1:
            return super().forward(input)
        return functional.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


class PatchSelector(nn.Module):
    """Images (b, channels, height, width) to a logit for each patch of a grid, from its neighbourhood and the whole."""

    def __init__(self, channels: int, size: int, grid: tuple[int, int], width: int = 32) -> None:
        super().__init__()
        self.size: int = size
        self.grid: tuple[int, int] = grid
        self.body: nn.Sequential = nn.Sequential(
            *_convolutions(channels, width),
            nn.AdaptiveAvgPool2d(grid),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.local: nn.Conv2d = nn.Conv2d(width, 1, 1)
        self.whole: nn.Sequential = nn.Sequential(
            nn.Flatten(), *_dense(width * grid[0] * grid[1], 4 * width, grid[0] * grid[1])
        )

    def forward(self, codes: Tensor) -> Tensor:
        x = self.body(_whole_patches(codes, self.size, self.grid))
        return self.local(x).flatten(1) + self.whole(x)


class PatchPredictor(nn.Module):
    """Images (b, channels, height, width) and a mask of their patches to class logits."""

    def __init__(self, channels: int, size: int, grid: tuple[int, int], classes: int, width: int = 32) -> None:
        super().__init__()
        self.size: int = size
        self.grid: tuple[int, int] = grid
        self.body: nn.Sequential = nn.Sequential(
            *[*_convolutions(channels, width), nn.AdaptiveAvgPool2d(grid), nn.Flatten()],
            *_dense(width * grid[0] * grid[1], 4 * width, classes),
        )

    def forward(self, codes: Tensor, mask: Tensor) -> Tensor:
        pixels = mask.unflatten(1, self.grid).repeat_interleave(self.size, 1).repeat_interleave(self.size, 2)
        return self.body(_whole_patches(codes, self.size, self.grid) * pixels.unsqueeze(1))


def _convolutions(channels: int, width: int) -> list[nn.Module]:
    """Two layers with batch normalisation, without which the selector chooses the same patches of all images."""
    layers = [nn.Conv2d(channels, width, 3, padding=1), _BatchNorm(width), nn.ReLU()]
    return [*layers, nn.Conv2d(width, width, 3, padding=1), _BatchNorm(width), nn.ReLU()]


def _whole_patches(images: Tensor, size: int, grid: tuple[int, int]) -> Tensor:
    """Images padded with zeros below and on the right, so that all patches are whole."""
    missing = [count * size - length for count, length in zip(grid, images.shape[2:], strict=True)]
    return functional.pad(images, (0, missing[1], 0, missing[0]))


def _sum(features: Tensor, mask: Tensor) -> Tensor:
    """Sum (b, f) of features (b, items, f), weighted by a mask (b, items)."""
    return (mask.unsqueeze(1) @ features).squeeze(1)


def _dense(features: int, width: int, classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, classes))
