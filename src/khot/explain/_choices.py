"""What the black box says about parts of the rows."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from khot.errors import InvalidValueError
from khot.explain._inputs import answers_folder
from khot.explain._training import Rows, chosen
from khot.explain.black_box import PredictProba, outputs
from khot.explain.maskers import Masker
from khot.topk import hard_topk


def masked(masker: Masker, X: Any, flags: NDArray[np.bool_]) -> Any:  # noqa: N803
    """The rows with nothing but the chosen items (n, items)."""
    found = masker.mask(X, flags)
    if len(found) != len(X):
        raise InvalidValueError(f"mask must keep the rows, {len(X)}, but left {len(found)}: mend the masker")
    return found


def random_choices(rows: Rows, k: int, draws: int, seed: int) -> Tensor:
    """Flags (n, draws, items) of k random items of each row, the forced among them."""
    generator = torch.Generator().manual_seed(seed)
    scores = (torch.rand(rows["eligible"].shape, generator=generator) for _ in range(draws))
    return torch.stack([chosen(one, rows["eligible"], rows["forced"], k, hard_topk).bool() for one in scores], 1)


def answers_to(
    predict_proba: PredictProba,
    masker: Masker,
    X: Any,  # noqa: N803
    choices: Tensor,
    batch_size: int,
    classes: int,
    folder: Path | None,
) -> Tensor:
    """The probabilities (n, draws, classes) of choices (n, draws, items), kept in `folder` if there is one."""
    found = []
    for flags in choices.unbind(1):
        parts = masked(masker, X, flags.numpy())
        place = answers_folder(folder, flags, parts)
        found.append(torch.from_numpy(outputs(predict_proba, parts, batch_size, classes, place)))
    return torch.stack(found, 1)
