"""Features of rows, checked."""

import numpy as np
import torch
from torch import Tensor, nn

from khot._estimators.encoding import encode_array
from khot._estimators.scaling import Scaling
from khot.errors import InvalidValueError


def features(encoder: nn.Module, raw: np.ndarray, scaling: Scaling) -> Tensor:
    """Features (n, f) of rows, or an error if the encoder returns anything else."""
    found = encode_array(encoder, raw, scaling)
    fits = found.ndim == 2 and len(found) == len(raw)
    if not fits or not found.isfinite().all():
        got = "NaN or infinite ones" if fits else f"shape {tuple(found.shape)} for {len(raw)} rows"
        hint = "bound its output, or look for extreme rows" if fits else "flatten its output"
        raise InvalidValueError(f"the encoder must return finite features (rows, features), but got {got}: {hint}")
    return found


def check_encoder(encoder: nn.Module, raw: np.ndarray, scaling: Scaling) -> None:
    """Refuse an encoder that cannot be applied to the rows, before it is trained."""
    if not list(encoder.parameters()):
        return  # the training refuses it
    try:
        features(encoder, raw[:2], scaling)
    except InvalidValueError:
        raise
    except Exception as error:
        shape = tuple(scaling(torch.from_numpy(raw[:2].copy())).shape)
        raise InvalidValueError(
            f"the encoder must take float32 rows such as those of shape {shape}, but it failed ({error}): "
            "change its first layer"
        ) from error
