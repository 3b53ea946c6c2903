"""Which items may be chosen, and which must."""

from typing import Any

import torch
from torch import Tensor

from khot.errors import InvalidValueError
from khot.explain.maskers import Items
from khot.explain.maskers.forms import array


def limits(items: Items, eligible: Any, forced: Any, k: int, learning: bool = False) -> dict[str, Tensor]:
    """Flags (n, items) of what may and what must be chosen, of the items that are present; something, when learning."""
    may = items.present if eligible is None else items.present & _flags("eligible", eligible, items.present)
    must = torch.zeros_like(may) if forced is None else items.present & _flags("forced", forced, items.present)
    needed = learning or (for_all_rows(eligible) is not None and bool(items.present.any()))
    if eligible is not None and needed and not bool((may | must).any()):
        raise InvalidValueError("eligible leaves no item to choose in any row: allow some")
    most = int(must.sum(1).amax())
    if most > k:
        raise InvalidValueError(
            f"at most k = {k} items of a row can be forced, but got {most}: force fewer, or raise k"
        )
    return {"eligible": may, "forced": must}


def for_all_rows(flags: Any) -> list[bool] | None:
    """Flags (items,) that do not depend on the row, or None."""
    return None if flags is None or array("flags", flags).ndim != 1 else array("flags", flags).tolist()


def _flags(name: str, value: Any, present: Tensor) -> Tensor:
    flags = array(name, value)
    if flags.dtype != bool or flags.shape not in (tuple(present.shape), (present.shape[1],)):
        raise InvalidValueError(
            f"{name} must be a bool array of shape ({present.shape[1]},) or {tuple(present.shape)}, "
            f"but got {flags.dtype} of shape {flags.shape}: pass one flag for each item"
        )
    return torch.from_numpy(flags.copy()).expand(present.shape)
