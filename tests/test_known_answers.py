import json
from pathlib import Path

import numpy as np
import pytest

from khot.cli import app
from khot.errors import InvalidValueError
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


@pytest.mark.parametrize(
    ("name", "slack"),
    [
        ("xor", 0.2),
        ("orange skin", 0.2),
        ("nonlinear additive", 0.2),
        pytest.param("switch", 0.5, marks=pytest.mark.slow),
    ],
)
def test_the_features_that_decide_are_found(name, slack):
    row = known_answers.run(name, "subset", "quick", test_rows=500)
    assert row.optimum <= row.median_rank <= row.optimum + slack


def test_reproduce_explain_writes_what_it_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    tiny = dict.fromkeys(known_answers.PROBLEMS, known_answers.Size(200, 50, 1))
    monkeypatch.setitem(known_answers.SIZES, "quick", tiny)
    app(["reproduce", "explain", "--out", str(tmp_path)], result_action="return_value")
    printed = capsys.readouterr().out
    rows = json.loads((tmp_path / "known-answers.json").read_text())["rows"]
    assert [(row["problem"], row["method"]) for row in rows] == [
        (name, method) for name in known_answers.PROBLEMS for method in ("subset", "l2x")
    ]
    assert all(f"{row['median_rank']:.2f}" in printed for row in rows)


def test_methods_without_known_answers_are_refused():
    with pytest.raises(InvalidValueError, match="method must be one of subset, l2x"):
        known_answers.run("xor", "subset-for-class", "quick")
