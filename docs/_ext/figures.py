"""Draw the figures of the pages before they are read: the script `figures/NAME.py` draws `_figures/NAME.svg`."""

import runpy
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from sphinx.util import logging

STYLE = {
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "font.size": 9,
    "legend.frameon": False,
    "svg.hashsalt": "khot",
}


def _draw(app):
    folder = Path(app.srcdir) / "_figures"
    folder.mkdir(exist_ok=True)
    matplotlib.use("agg")
    for script in sorted((Path(app.srcdir) / "figures").glob("[a-z]*.py")):
        picture = folder / f"{script.stem}.svg"
        if not picture.exists() or picture.stat().st_mtime < script.stat().st_mtime:
            logging.getLogger(__name__).info("drawing %s", picture.name)
            with matplotlib.rc_context(STYLE):
                runpy.run_path(str(script), run_name="__main__")
                pyplot.savefig(picture, metadata={"Date": None})
                pyplot.close("all")


def setup(app):
    """Draw once the settings are read."""
    app.connect("builder-inited", _draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
