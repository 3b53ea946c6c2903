"""What experiments share: plans and folders of trainings, the time they took, the machine, and files of results."""

import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch

import khot
from khot._files import readable_json, write_text
from khot.errors import InvalidValueError
from khot.training.folders import cached_runs

Plan = TypeVar("Plan")
Result = TypeVar("Result")


def find_plan(plans: Mapping[tuple[str, str], Plan], profile: str, dataset: str) -> Plan:
    """Plan of the trainings for a profile and a dataset."""
    if (profile, dataset) not in plans:
        known = ", ".join(f"{name} ({kind})" for kind, name in plans)
        raise InvalidValueError(f"there is no profile {profile!r} for {dataset!r}: choose one of {known}")
    return plans[profile, dataset]


@contextmanager
def runs(folder: Path | None, profile: str, experiment: str) -> Iterator[Path]:
    """Folder for trainings: the given one, a temporary one for the quick profile, or one in the user's cache."""
    if folder is None and profile == "quick":
        with tempfile.TemporaryDirectory() as place:
            yield Path(place)
    else:
        yield folder or cached_runs() / experiment


def write_result(path: Path, content: dict[str, Any]) -> None:
    """Write or replace a file of results."""
    write_text(path, readable_json(content, allow_nan=True))


def write_rows(path: Path, rows: Sequence[Any], settings: dict[str, Any]) -> Path:
    """Write or replace a file with several results and the settings that they share; return its path."""
    write_result(path, {"rows": [asdict(row) for row in rows], "settings": settings, "machine": machine()})
    return path


def read_results(
    folder: Path, pattern: str, make: Callable[..., Result], place: Callable[[Result], tuple[int, ...]]
) -> list[Result]:
    """Results in the files that match a pattern, ordered by `place`. Other files are reported and left out."""
    found = []
    for path in sorted(folder.glob(pattern)):
        try:
            result = make(**json.loads(path.read_text(encoding="utf-8")))
            found.append((place(result), result))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            print(f"left out {path}, which is no result ({type(error).__name__}: {error})", file=sys.stderr)
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


def spent(*folders: Path) -> dict[str, Any]:
    """Minutes of all trainings in some folders, by the clock and of processors.

    Processor time is longer with several threads, and shorter if other programs ran. None if it was not measured.
    """
    histories = [json.loads(path.read_text()) for folder in folders for path in folder.rglob("history.json")]
    records = [record for history in histories for record in history["epochs"]]
    worked = [record.get("processor_seconds") for record in records]
    return {
        "minutes": round(sum(record["seconds"] for record in records) / 60, 4),
        "processor_minutes": None if None in worked else round(sum(worked) / 60, 4),
    }


def machine(packages: tuple[str, ...] = ("torch", "numba", "numpy")) -> dict[str, Any]:
    """Processor, cores, threads of torch, and versions of khot, Python and some packages."""
    name, described = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if described.exists():
        lines = described.read_text().splitlines()
        name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), name)
    versions = {"khot": khot.__version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in packages}
    return {"processor": name, "cores": os.cpu_count(), "threads": torch.get_num_threads(), "versions": versions}


def percent(share: float) -> float:
    """Share as a percentage with two decimals."""
    return round(100 * float(share), 2)
