"""Arrays from whatever the user passes, checked by scikit-learn."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import validate_data

from khot.errors import InvalidTypeError, InvalidValueError


def as_array(value: Any) -> Any:
    """Convert tensors to arrays, and refuse masked values and dates. scikit-learn checks everything else."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise InvalidTypeError(f"a tensor of layout {value.layout} cannot be used: pass x.to_dense()")
        return (value.float() if value.dtype == torch.bfloat16 else value).detach().cpu().numpy()
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidValueError("an array with masked values cannot be used: fill them in, or leave out such rows")
    if getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
        raise InvalidTypeError(f"an array of {value.dtype} cannot be used: convert it to numbers or texts")
    return value


def validated(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """Result of scikit-learn's `validate_data`, whose errors become khot's."""
    arrays = tuple(map(as_array, arrays))
    try:
        return validate_data(estimator, *arrays, **options)
    except ValueError as error:
        raise InvalidValueError(_in_one_line(error)) from error
    except TypeError as error:
        raise InvalidTypeError(f"X must be an array of numbers ({_in_one_line(error)}): convert it") from error


def _in_one_line(error: Exception) -> str:
    """Message of scikit-learn, without its page of advice on missing values."""
    message = str(error)
    if "contains NaN" in message or "contains infinity" in message:
        return f"{message.splitlines()[0].rstrip('.')}: fill in or leave out such rows"
    return message.replace("\n", " ")
