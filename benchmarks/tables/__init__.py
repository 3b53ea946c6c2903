"""Markdown tables made from `results/*.json` and `benchmarks/results/*.json`.

`paper` has a function for each table and figure of the paper, `measured` one for each benchmark; `summary` is the one
table of the README. Each takes nothing and returns text, so that the README and the pages of `docs` show the same
numbers and nobody types them. A number that is worse than the paper's, or than a peer's, says so in its cell.
`machine("results/timing.json")` says in one line where a file was made.
"""

from benchmarks.tables.cells import machine
from benchmarks.tables.summary import summary

__all__ = ["machine", "summary"]
