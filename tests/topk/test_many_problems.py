"""Three hundred random problems against extended precision."""

import numpy as np
import pytest
import torch

import khot
from tests import oracles
from tests.problems import Problem, problems


def exact(problem: Problem) -> np.ndarray:
    result = np.zeros(len(problem.keys))
    present = problem.keys > -np.inf
    if present.sum() == 1:
        return present.astype(float)
    result[present] = oracles.successive_extended(problem.keys[present].astype(float), problem.k, problem.temperature)
    return result


@pytest.mark.parametrize("seed", range(10))
def test_values_keep_the_promise(seed: int):
    for problem in problems(30, seed, longest=3000, most=3e4):
        got = khot.successive_softmax(torch.from_numpy(problem.keys), problem.k, problem.temperature).double().numpy()
        error = np.abs(got - exact(problem)).max()
        if error > problem.promised():  # 19 digits may be too few for the oracle
            error = np.abs(
                got - oracles.relaxed(oracles.successive_softmax, problem.keys, problem.k, problem.temperature)
            ).max()
        assert error <= problem.promised(), problem
