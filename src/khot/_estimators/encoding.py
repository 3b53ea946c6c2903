"""Application of a trained encoder to rows."""

import copy
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from khot._estimators.scaling import Scaling

_ROWS = 512  # encoded together


def encode_array(encoder: nn.Module, raw: np.ndarray, scaling: Scaling) -> Tensor:
    """Outputs of an encoder for the raw rows of an array."""
    return encode(encoder, (raw[start : start + _ROWS] for start in range(0, len(raw), _ROWS)), scaling)


def encode(encoder: nn.Module, pieces: Iterable[np.ndarray], scaling: Scaling, in_double: bool = False) -> Tensor:
    """Outputs of an encoder in float32 on the CPU, for raw rows that come some at a time.

    With `in_double` it computes in float64, so that rounding does not depend on which rows come together.
    """
    encoder = (copy.deepcopy(encoder).double() if in_double else encoder).eval()
    parameter = next(encoder.parameters())
    rows = (scaling(torch.from_numpy(piece.copy())).to(parameter.device) for piece in pieces)
    with torch.no_grad():
        return torch.cat([encoder(piece.double() if in_double else piece).float().cpu() for piece in rows])
