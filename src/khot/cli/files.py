"""Files and folders on the command line, checked before any work begins."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from khot.errors import InvalidValueError

if TYPE_CHECKING:
    from khot._estimators.storage import Kind


def check_folders(out: Path, kind: "Kind", folder: Path | None) -> None:
    """Refuse a folder that cannot hold a model of this kind.

    A folder for the training is refused as well if it is a file, lies in the folder of the model, or contains it.
    """
    from khot._estimators.storage import check_folder

    check_folder(out, kind)
    if folder is None:
        return
    if folder.is_file():
        raise InvalidValueError(f"--folder must be a folder, but {folder} is a file: name another folder")
    inner, outer = folder.resolve(), out.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InvalidValueError(
            f"--folder must be a folder outside of --out that does not contain it, but got {folder} and {out}: "
            "choose another folder"
        )


def check_inputs(out: Path, inputs: Mapping[str, Path]) -> None:
    """Refuse input files, given with their names, in the folder whose files will be replaced."""
    for what, path in inputs.items():
        if out.resolve() in path.resolve().parents:
            raise InvalidValueError(f"{what} must not be in the folder of --out, but got {path}: choose another folder")


def check_outputs(rows: Path, outputs: Mapping[str, Path | None], model: Path | None = None) -> None:
    """Refuse output files, given with their options, that cannot be written, or that replace the rows or each other.

    Files in the folder of the model are refused as well.
    """
    taken = {rows.resolve(): "the file of the rows"}
    for option, path in outputs.items():
        if path is None:
            continue
        if model is not None and model.resolve() in path.resolve().parents:
            raise InvalidValueError(f"{option} must not be in the folder of the model, but got {path}: name another")
        linked = rows.exists() and path.exists() and path.samefile(rows)
        other = taken.get(rows.resolve() if linked else path.resolve())
        if other is not None:
            raise InvalidValueError(f"{option} and {other} are both {path}: name two files")
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InvalidValueError(
                f"{option} must be a file that can be written, but got {path}: name one in a folder that exists"
            )
        taken[path.resolve()] = option
