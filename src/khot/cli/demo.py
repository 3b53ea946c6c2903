"""`khot demo`: the main uses of khot on one page."""

from pathlib import Path


def demo(*, out: Path = Path("khot-demo")) -> None:
    """Run the main applications on data that come with khot, and write a page with the results, in a minute or two.

    Parameters
    ----------
    out
        Folder for index.html and its pictures and data.
    """
    from khot.experiments.demo import run

    out.mkdir(parents=True, exist_ok=True)
    print(f"wrote {run(out)}: open it in a browser")
