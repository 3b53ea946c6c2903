"""Ten thousand random problems: is a result ever worse than promised, and which path did it take?"""

import argparse
from collections import Counter

import numpy as np

from benchmarks.common import write
from khot.topk.successive._compiled import tables
from khot.topk.successive._compiled.constants import SUM
from tests import oracles
from tests.problems import Problem, problems

PATHS = ["bad", "empty", "short", "nodes", "all items", "32 digits"]


def solve(problem: Problem) -> tuple[np.ndarray, str]:
    out = np.empty((1, 1, len(problem.keys)), problem.keys.dtype)
    paths, items = np.empty(1, np.int64), np.empty((1, 0), np.int64)
    table = tables.Table(
        problem.keys[None], np.array([problem.k]), np.array([problem.temperature]), items, problem.k, SUM
    )
    tables.forward(table, out, np.empty((1, 0)), paths)
    return out[0, 0], PATHS[paths[0]]


def error(problem: Problem, got: np.ndarray) -> float:
    """The largest error against 80-bit floats; where those are too few digits, against mpmath."""
    present = problem.keys > -np.inf
    if present.sum() == 1:
        return float(np.abs(got - present).max())
    exact = oracles.successive_extended(problem.keys[present].astype(float), problem.k, problem.temperature)
    result = np.abs(got[present] - exact).max()
    if result > problem.promised():
        exact = oracles.relaxed(oracles.successive_softmax, problem.keys, problem.k, problem.temperature)
        result = np.abs(got - exact).max()
    return float(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    count = parser.parse_args().count
    paths, worst, broken = Counter(), Counter(), 0
    for problem in problems(count, seed=0, longest=20_000, most=2e6):
        got, path = solve(problem)
        share = error(problem, got) / problem.promised()
        paths[path] += 1
        worst[path] = max(worst[path], share)
        if share > 1:
            broken += 1
            print(f"  over: {share:.2g} of what is promised, {path}, {problem}")
    claims = [{"what": f"of {count} problems, worse than promised", "measured": broken, "at_most": 0}]
    for path in paths:
        claims.append({"what": f"{path}: rows", "measured": paths[path]})
        claims.append({"what": f"{path}: largest error over the promised one", "measured": worst[path]})
    write("accuracy", claims)


if __name__ == "__main__":
    main()
