"""The command line: parse, call, print."""

import sys

from cyclopts import App

import khot
from khot.cli.demo import demo
from khot.cli.embed import embed
from khot.cli.explain import explain
from khot.cli.knn import knn
from khot.cli.reproduce import reproduce
from khot.errors import KhotError

app = App(
    name="khot",
    help="Differentiable subset sampling.",
    version=khot.__version__,
    suppress_keyboard_interrupt=False,  # it would say nothing
)
app.command(demo)
app.command(embed)
app.command(explain)
app.command(knn)
app.command(reproduce)


def main(arguments: list[str] | None = None) -> None:
    """Run a command, by default the process's own; a mistake of the user's ends in one line, not in a traceback."""
    try:
        app(arguments)
    except KeyboardInterrupt as stop:
        print(f"khot: {stop or 'stopped by Ctrl-C'}", file=sys.stderr)
        sys.exit(130)
    except (KhotError, OSError) as error:
        print(f"khot: {error}", file=sys.stderr)
        sys.exit(2)
