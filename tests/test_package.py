"""The package as a whole: lazy imports, the table of contents, the README."""

import subprocess
import sys

import pytest

import khot

NAMES = [
    *["gumbel_keys", "reservoir_keys", "hard_topk", "successive_softmax", "neuralsort", "softsort", "capped_simplex"],
    *["sample_subset", "Subset", "OrderedSubset", "RelaxedSubset", "RelaxedOrderedSubset", "nn", "datasets"],
    *["neighbors", "embed"],
]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("module", ["khot", "khot.cli"])
def test_import_does_not_load_torch(module: str):
    heavy = run(f"import {module}, sys; print([m for m in ('torch', 'numpy', 'matplotlib') if m in sys.modules])")
    assert heavy.strip() == "[]"


def test_help_does_not_load_torch():
    code = "import sys; sys.argv = ['khot', 'reproduce', 'synthetic', '--help']\nfrom khot.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    assert run(code).splitlines()[-1] == "False"


def test_names_resolve_on_first_use():
    assert run("import khot, sys; khot.Subset; print('torch' in sys.modules)").strip() == "True"
    for name in NAMES:
        assert getattr(khot, name) is not None
        assert name in dir(khot)
        assert name in khot.__all__
    assert khot.nn.SubsetSampler
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        khot.nonsense  # noqa: B018


def test_every_public_name_is_documented():
    for name in khot.__all__:
        assert getattr(khot, name).__doc__
