"""Reservoirs as bytes: a line with the version, a digest, and safetensors with a record in JSON."""

import hashlib
import json
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from khot.errors import DataFileError, InvalidTypeError
from khot.reservoir._best import Rows

_HEAD, _DIGEST = b"khot reservoir 1\n", 32
_ABOUT = "about"


def packed(about: dict[str, Any], rows: Rows) -> bytes:
    """A record and the columns of rows, but for their items, as bytes."""
    try:
        text = json.dumps(about)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"items must be texts, numbers, or lists and dicts of such, to become bytes, but: {error}: extend with "
            "items=None, which samples row numbers"
        ) from error
    columns = {name: np.ascontiguousarray(column) for name, column in rows._asdict().items() if name != "items"}
    body = save({**columns, _ABOUT: np.frombuffer(text.encode(), np.uint8)})
    return _HEAD + hashlib.sha256(body).digest() + body


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `packed` was given."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidTypeError(
            f"a reservoir is read from bytes, but got {type(data).__name__}: pass what to_bytes gave"
        )
    data = bytes(data)
    head, digest, body = data[: len(_HEAD)], data[len(_HEAD) : len(_HEAD) + _DIGEST], data[len(_HEAD) + _DIGEST :]
    if head != _HEAD:
        wanted = "of another version of khot" if head.startswith(_HEAD[:15]) else "no bytes of a reservoir"
        raise DataFileError(f"the data are {wanted}, they begin with {head!r}: pass what to_bytes gave")
    if hashlib.sha256(body).digest() != digest:
        raise DataFileError("the bytes of the reservoir are damaged or cut off: make them again with to_bytes")
    try:
        columns = load(body)
        return json.loads(columns.pop(_ABOUT).tobytes()), columns
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DataFileError(f"the bytes of the reservoir are damaged ({error}): make them again") from error
