import numpy as np
import pytest

from khot.experiments import known_answers


@pytest.mark.parametrize("name", known_answers.PROBLEMS)
def test_only_the_relevant_features_matter(name):
    problem, noise = known_answers.PROBLEMS[name], np.random.RandomState(0)
    X = problem.draw(200, noise)  # noqa: N806
    relevant = problem.relevant(X)
    assert (relevant.sum(1) == problem.k).all()
    np.testing.assert_allclose(problem.predict_proba(X).sum(1), 1)
    changed = np.where(relevant, X, noise.randn(*X.shape))
    np.testing.assert_allclose(problem.logit(changed), problem.logit(X))
    for feature in range(known_answers.FEATURES):
        moved = X.copy()
        moved[:, feature] = -moved[:, feature] * 1.5
        touched = problem.logit(moved) != problem.logit(X)
        assert touched[relevant[:, feature]].all() or feature in (3, 9)


def test_the_median_rank_of_perfect_scores_is_the_optimum():
    for problem in known_answers.PROBLEMS.values():
        X = problem.draw(50, np.random.RandomState(1))  # noqa: N806
        relevant = problem.relevant(X)
        assert known_answers.median_rank(relevant.astype(float), relevant) == problem.optimum


@pytest.mark.parametrize(("name", "slack"), [("xor", 0.2), ("orange skin", 0.2), ("nonlinear additive", 0.2)])
def test_the_features_that_decide_are_found(name, slack):
    row = known_answers.run(name, "subset", rows=20_000, test_rows=500, epochs=6, batch_size=250, patience=None)
    assert row.median_rank <= row.optimum + slack
