# Every target installs what it needs into .venv first; a second run starts at once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs bench

demo: .venv/installed
	$(BIN)/khot demo --out build/demo

# Two processes of one thread each: of two, the threads of one that wait would take the cores of the other.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

docs: .venv/docs
	rm -rf docs/reference/generated
	$(BIN)/sphinx-build -W --keep-going -d build/doctrees docs build/docs

bench: .venv/installed
	-for peer in entmax difftopk torchsort; do \
		$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --constraint constraints.txt $$peer; \
	done
	$(BIN)/python -m benchmarks

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv/docs: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@
