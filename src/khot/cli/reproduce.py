"""`khot reproduce ...`: the paper's tables and figures."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

reproduce = App(name="reproduce", help="Reproduce a table or a figure of the paper.")


@reproduce.command
def synthetic(
    *,
    weights: Annotated[tuple[float, ...], Parameter(consume_multiple=True, negative=())] = (0.1, 0.2, 0.3, 0.4),
    k: Annotated[int, Parameter(name=["--k", "-k"])] = 2,
    samples: int = 10_000,
    temperatures: Annotated[tuple[float, ...], Parameter(consume_multiple=True, negative=())] = (0.1, 1.0, 10.0),
    seed: int = 0,
    out: Path = Path("results"),
) -> None:
    """Compare the subsets chosen by relaxed samples with their exact probabilities.

    Parameters
    ----------
    weights
        Weights of the items.
    k
        Size of the subset.
    samples
        Samples a temperature.
    temperatures
        Temperatures of the relaxation.
    seed
        Seed of the noise.
    out
        Folder for synthetic.json and synthetic.png.
    """
    from khot.experiments.synthetic import run, table, write

    result = run(weights, k, samples, temperatures, seed)
    print(table(result))
    for path in write(result, out):
        print(f"wrote {path}")
