"""Description of the machine on which times were measured."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import khot


def machine(packages: tuple[str, ...] = ("torch", "numba", "numpy")) -> dict[str, Any]:
    """Processor, cores, threads of torch, and versions of khot, Python and some packages."""
    name, described = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if described.exists():
        lines = described.read_text().splitlines()
        name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), name)
    versions = {"khot": khot.__version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in packages}
    return {"processor": name, "cores": os.cpu_count(), "threads": torch.get_num_threads(), "versions": versions}
