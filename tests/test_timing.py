import json
from pathlib import Path

import pytest
import torch

import khot
from khot.cli import app, main
from khot.experiments import timing


def test_neuralsort_as_published_is_khots():
    keys = torch.randn(30, generator=torch.Generator().manual_seed(0))
    for temperature in (0.5, 3.0):
        rows = timing.published_neuralsort(keys, temperature)
        assert rows.shape == (30, 30)
        torch.testing.assert_close(rows[:5], khot.neuralsort(keys, 5, temperature, ordered=True), atol=1e-5, rtol=0)


def test_the_operators_agree_in_pairs():
    keys = torch.randn(40, generator=torch.Generator().manual_seed(1))
    published, ours, textbook, successive = (operator(keys, 5, 1.0) for operator in timing.OPERATORS.values())
    torch.testing.assert_close(published, ours, atol=1e-5, rtol=0)
    torch.testing.assert_close(textbook, successive, atol=1e-5, rtol=0)


def test_the_table_has_a_row_for_each_operator_and_size():
    state = torch.random.get_rng_state()
    result = timing.run(n_candidates=[100, 20, 100], trials=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [(row.m, row.operator) for row in result.rows] == [(m, name) for m in (20, 100) for name in timing.OPERATORS]
    for row in result.rows:
        assert row.trials == 2
        parts = row.encoder_seconds, row.operator_seconds, row.total_seconds
        assert all(0 < seconds.best <= seconds.mean for seconds in parts)
        assert row.total_seconds.mean == pytest.approx(row.encoder_seconds.mean + row.operator_seconds.mean)
        assert (row.operator_times_faster.mean == 1) == (row.operator == timing.PUBLISHED)
    assert [row.paper_seconds for row in result.rows[4:]] == [0.010, None, 0.010, None]
    assert all(row.paper_seconds is None for row in result.rows[:4])
    shown = timing.table(result)
    assert all(shown.count(name) == 2 for name in timing.OPERATORS)


def test_the_papers_figures_stand_beside_the_papers_k_only():
    assert all(row.paper_seconds is None for row in timing.run(n_candidates=[100], k=4, trials=1).rows)
    ratios = [timing.PAPER[timing.PUBLISHED][m] / timing.PAPER[timing.TEXTBOOK][m] for m in timing.CANDIDATES]
    assert ratios == pytest.approx([1.0, 2.6, 33.6], abs=0.05)


def test_long_trials_are_fewer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timing, "_trial", lambda *_: (4.0, 1.0))
    assert {row.trials for row in timing.run(n_candidates=[10]).rows} == {6}
    assert {row.trials for row in timing.run(n_candidates=[10], trials=2).rows} == {2}


def test_reproduce_timing_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture):
    folder = tmp_path / "new" / "folder"
    options = "--candidates 20 40 -k 3 --trials 2 --seed 5 --out"
    app(["reproduce", "timing", *options.split(), str(folder)], result_action="return_value")
    printed = capsys.readouterr().out
    data = json.loads((folder / "timing.json").read_text())
    assert data["settings"]["candidates"] == [20, 40]
    assert [data["settings"][name] for name in ("k", "trials", "seed")] == [3, 2, 5]
    assert data["settings"]["pass"].startswith("forward only")
    assert data["machine"]["threads"] == torch.get_num_threads()
    assert len(data["rows"]) == 8
    assert f"{data['rows'][3]['operator_seconds']['mean']:.5f}" in printed
    assert (folder / "timing.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-k 7 --candidates 6 9", "k must lie between 0 and the number of items, 6"),
        ("-k 0", "k must be at least 1"),
        ("--trials 0", "trials must be at least 1"),
        ("--candidates", "candidates must hold at least one number"),
        ("--candidates 0", "candidates must be at least 1"),
        ("--seed 99999999999999999999", "random_state must be at most 9223372036854775807"),
    ],
)
def test_mistakes_end_in_one_line(arguments: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "timing", *arguments.split(), "--out", str(tmp_path)])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("khot: ")
    assert message in error
    assert error.count("\n") == 1
