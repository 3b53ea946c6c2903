# Every target installs what it needs into .venv first; a second run starts at once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-long lint docs wheel-check bench readme

demo: .venv/installed
	$(BIN)/khot demo --out build/demo

# Two processes of one thread each: of two, the threads of one that wait would take the cores of the other.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

# What takes minutes and hardly ever breaks: tests marked as slow.
test-long: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/pytest -m slow

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	@mkdir -p build
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --verifytypes khot --ignoreexternal > build/types.txt || (cat build/types.txt; exit 1)
	$(BIN)/lint-imports

docs: .venv/docs
	rm -rf docs/reference/generated
	$(BIN)/sphinx-build -W --keep-going -d build/doctrees docs build/docs

# Builds a source distribution and from it a wheel, installs that into a new environment, and tries it there.
wheel-check: .venv/installed
	rm -rf build/wheel
	$(BIN)/python -m build --outdir build/wheel
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt build/wheel/*.whl
	cd build/wheel && env -u PYTHONPATH venv/bin/python ../../tests/wheel.py

bench: .venv/installed
	-for peer in entmax difftopk torchsort; do \
		$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --constraint constraints.txt $$peer; \
	done
	$(BIN)/python -m benchmarks

# The numbers and pictures of README.md, from the files of results; a test fails when the numbers disagree.
readme: .venv/installed
	$(BIN)/python -m benchmarks.readme

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv/docs: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@
