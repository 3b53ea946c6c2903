"""What the black box says about parts of the rows."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain._inputs import answers_folder
from khot.explain._training import Rows, chosen
from khot.explain.black_box import PredictProba, outputs
from khot.explain.maskers import Masker
from khot.topk import hard_topk


def masked(masker: Masker, X: Any, flags: NDArray[np.bool_]) -> Any:  # noqa: N803
    """The rows with nothing but the chosen items (n, items); the masker cannot change arrays that it is given."""
    found = masker.mask(*(_read_only(part) if isinstance(part, np.ndarray) else part for part in (X, flags)))
    if not hasattr(found, "__len__"):
        raise InvalidTypeError(f"mask must return rows, but returned {found!r}: mend the masker")
    if len(found) != len(X):
        raise InvalidValueError(f"mask must keep the rows, {len(X)}, but left {len(found)}: mend the masker")
    return found


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


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
    for number, flags in enumerate(choices.unbind(1), start=1):
        parts = masked(masker, X, flags.numpy())
        place = answers_folder(folder, flags, parts, number)
        what = f"rows masked at random (draw {number})"
        found.append(torch.from_numpy(outputs(predict_proba, parts, batch_size, classes, place, what=what)))
    return torch.stack(found, 1)
