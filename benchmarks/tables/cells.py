"""Reading the files of results, and writing cells and tables."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def result(name: str) -> dict[str, Any]:
    """The content of `results/<name>.json`."""
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def claims(name: str) -> dict[str, dict[str, Any]]:
    """The claims of `benchmarks/results/<name>.json` by what they measure."""
    content = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return {claim["what"]: claim for claim in content["claims"]}


def machine(path: str) -> str:
    """Where a file of results was made, such as `machine("results/timing.json")`, in one line."""
    own = json.loads((ROOT / path).read_text(encoding="utf-8"))["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in own["versions"].items())
    return f"{own['processor']}, {own['cores']} cores, torch with {own['threads']} threads; {versions}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def short(value: float) -> str:
    """Three significant digits, with commas between thousands; whole numbers as they are.

    >>> short(0.34567), short(15.58), short(291.3), short(3766.8), short(6414)
    ('0.346', '15.6', '291', '3,767', '6,414')
    """
    return f"{value:,.0f}" if abs(value) >= 100 or isinstance(value, int) else f"{value:#.3g}"


def against(
    ours: float, theirs: float, digits: int, *, compared: int | None = None, most: bool = True, who: str = "the paper"
) -> str:
    """A number, and a remark if it is worse than another one, to which all of `digits` or `compared` digits count.

    >>> against(89.05, 90.1, 2, compared=1), against(92.3, 90.1, 2), against(3.2, 3.05, 2, most=False)
    ('89.05 (below the paper)', '92.30', '3.20 (above the paper)')
    """
    text, precision = f"{ours:.{digits}f}", digits if compared is None else compared
    difference = round(ours, precision) - round(theirs, precision)
    if difference == 0 or (difference > 0) == most:
        return text
    return f"{text} ({'below' if most else 'above'} {who})"
