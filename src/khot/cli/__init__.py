"""The command line: parse, call, print."""

import os
import sys
import warnings

from cyclopts import App, CycloptsError

import khot
from khot.cli.demo import demo
from khot.cli.embed import embed
from khot.cli.explain import explain
from khot.cli.knn import knn
from khot.cli.renamed import with_new_names
from khot.cli.reproduce import reproduce
from khot.cli.warmup import warmup
from khot.errors import KhotError, one_line

app: App = App(
    name="khot",
    help="Differentiable subset sampling.",
    version=khot.__version__,
    suppress_keyboard_interrupt=False,  # cyclopts would exit without a message
)
for _command in (demo, embed, explain, knn, reproduce, warmup):
    app.command(_command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command, by default that of `sys.argv`; a user's mistake ends in one line and not in a traceback."""
    printed: set[str] = set()

    def print_once(message: Warning | str, *_: object) -> None:
        if str(message) not in printed:  # a model may repeat its warning in every call
            print(f"khot: warning: {message}", file=sys.stderr)
        printed.add(str(message))

    warnings.showwarning = print_once
    try:
        try:
            words = with_new_names(sys.argv[1:] if arguments is None else arguments)
            app(words, exit_on_error=False, print_error=False)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        print(f"khot: {str(stop) or 'stopped by Ctrl-C'}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe; Python must not flush to it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except UnicodeEncodeError as error:
        print(f"khot: {error}: write to a file instead, or set PYTHONIOENCODING=utf-8", file=sys.stderr)
        sys.exit(2)
    except CycloptsError as error:  # an option or a value that the command does not know
        command = " ".join(["khot", *(error.command_chain or ())])
        print(f"khot: {one_line(error).rstrip('.')} (see {command} --help)", file=sys.stderr)
        sys.exit(2)
    except (KhotError, OSError) as error:
        missing = error.filename if isinstance(error, FileNotFoundError) else None
        print(f"khot: {error if missing is None else f'{missing} does not exist: check the path'}", file=sys.stderr)
        sys.exit(2)
