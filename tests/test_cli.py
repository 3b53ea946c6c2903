import json
import subprocess
import sys
from pathlib import Path

import pytest

import khot
from khot.cli import app, main
from khot.errors import KhotError
from khot.experiments import synthetic


def test_the_default_seed_is_within_the_papers_distance():
    result = synthetic.run()
    assert len(result.subsets) == 6
    assert sum(result.true) == pytest.approx(1)
    for histogram in (*result.relaxed, *result.hard):
        assert histogram.distance < synthetic.PAPER_DISTANCE
        assert sum(histogram.empirical) == pytest.approx(1)
        for share, half_width in zip(histogram.empirical, histogram.interval, strict=True):
            assert half_width == pytest.approx(1.96 * (share * (1 - share) / 10_000) ** 0.5)
    from_temperature_1 = zip(result.relaxed[1:], result.hard[1:], strict=True)
    assert all(relaxed == hard for relaxed, hard in from_temperature_1)  # Theorem 1


def test_a_seed_fixes_the_result():
    settings = {"samples": 500, "temperatures": (0.5,)}
    assert synthetic.run(random_state=3, **settings).relaxed == synthetic.run(random_state=3, **settings).relaxed
    assert synthetic.run(random_state=3, **settings).relaxed != synthetic.run(random_state=4, **settings).relaxed


def test_reproduce_synthetic_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture):
    options = "--weights 1 2 3 -k 1 --samples 300 --temperatures 0.5 2 --seed 5 --out"
    folder = tmp_path / "new" / "folder"
    app(["reproduce", "synthetic", *options.split(), str(folder)], result_action="return_value")
    printed = capsys.readouterr().out
    data = json.loads((folder / "synthetic.json").read_text())
    assert (data["weights"], data["k"], data["samples"], data["seed"]) == ([1, 2, 3], 1, 300, 5)
    assert data["temperatures"] == [0.5, 2]
    assert data["paper_distance"] is None
    assert "{3}" in printed
    assert f"{data['relaxed'][1]['distance']:.4f}" in printed
    picture = (folder / "synthetic.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5000


def test_the_papers_bound_stands_beside_the_papers_problem(tmp_path: Path, capsys: pytest.CaptureFixture):
    app(["reproduce", "synthetic", "--out", str(tmp_path)], result_action="return_value")
    assert "<= 0.016" in capsys.readouterr().out
    app(["reproduce", "synthetic", "--samples", "200", "--out", str(tmp_path)], result_action="return_value")
    assert "TV, paper" not in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "synthetic", "--out", str(tmp_path / "file")])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("khot: ")


def test_fractions_are_not_rounded_to_whole_numbers():
    with pytest.raises(SystemExit):
        main(["reproduce", "synthetic", "--samples", "1.5"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-k 7", "k must lie between 0 and the number of items, 4"),
        ("--temperatures 0", "temperature must be positive"),
        ("--weights 1 -1", "weights must be finite and >= 0"),
        ("--samples 0", "samples must be at least 1"),
        ("--temperatures", "temperatures must hold at least one number"),
        ("--seed 99999999999999999999", "random_state must be at most 9223372036854775807"),
        ("--weights 1 2 3 4 5 6 7 8 9 10 11 12 -k 6", "924 subsets"),
    ],
)
def test_mistakes_end_in_one_line(arguments: str, message: str, capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "synthetic", *arguments.split()])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("khot: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("knn fit --outt x", "Unknown option: --outt. Did you mean --out? (see khot knn fit --help)"),
        ("knn fit rows.csv", "--out requires an argument (see khot knn fit --help)"),
        ("knn fit rows.csv more.csv -o x", "['more.csv'] (see khot knn fit --help)"),
        ("knn fit rows.csv -o x --encoder nobody", '"nobody" for --encoder'),
        ("reproduce synthetic --samples 1.5", "--samples"),
        ("nobody", '"nobody"'),
    ],
)
def test_unknown_and_missing_arguments_end_in_one_line(arguments: str, message: str, capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("khot: ")
    assert message in error
    assert error.endswith("--help)\n")
    assert error.count("\n") == 1


def test_the_installed_command_knows_its_version():
    command = Path(sys.executable).parent / "khot"
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == khot.__version__


def test_too_many_subsets_is_an_error_of_khot():
    with pytest.raises(KhotError, match="more than the 120"):
        synthetic.run(weights=[1.0] * 20, k=5)
