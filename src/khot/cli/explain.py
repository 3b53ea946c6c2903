"""`khot explain ...`: learn which items of the rows of a file determine a model's predictions, and show them."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from khot.cli.files import check_folders, check_outputs
from khot.cli.options import K, Names, Out, Training, WholeNumber, check_ignored
from khot.errors import BlackBoxError, InvalidValueError, ModelFileError, one_line

explain: App = App(name="explain", help="Explain a model's predictions by the k most informative items of a row.")

_TEXTS = "or name the column of texts (--text)"


@Parameter(name="*")
@dataclass(frozen=True)
class Texts:
    """How texts are read.

    Parameters
    ----------
    text
        Name of the column with the texts.
    items
        Whether to choose words or sentences of the texts.
    length
        Maximum number of words. Of longer texts, only the last words can be chosen (400 by default). Of longer
        sentences, only the first words are read (100 by default). Shorter is faster.
    sentences
        Maximum number of sentences (15 by default). Of longer texts, only the first sentences can be chosen.
    """

    text: str | None = None
    items: Literal["words", "sentences"] = "words"
    length: WholeNumber | None = None
    sentences: WholeNumber | None = None

    def masker(self) -> Any:
        """Masker of the texts, or of columns if there is no column of texts; options for others are refused."""
        from khot.explain import Columns, Sentences, Words

        limits = {"length": self.length, "sentences": self.sentences}
        given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
        if self.text is None:
            if given:
                option = f"--{next(iter(given))}"
                raise InvalidValueError(
                    f"{option} is for texts, but there is no --text: drop it, or name the column of texts"
                )
            return Columns()
        if self.items == "sentences":
            return Sentences(**given)
        if self.sentences is not None:
            raise InvalidValueError("--sentences is for sentences, but words are chosen: pass --items sentences")
        return Words(**given)


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """Parameters of an explainer.

    Parameters
    ----------
    k
        Number of items to choose.
    class_names
        Names of the model's classes for the pages, separated by spaces.
    sampler
        subset for relaxed subset sampling, l2x for the independent samples of L2X.
    for_class
        Choose the items that are evidence for the predicted class, not those most informative about the output.
    random_choices
        Number of random subsets of each row that the model is queried on, in addition to the whole rows. More of them
        improve the explainer where rows are few. By default 3 for fewer than 2,000 rows and with --for-class, else 0.
    temperature
        Temperature of the relaxation; by default the best of five after a short training at each.
    epochs
        Maximum number of passes over the data; more if the search for the temperature takes more.
    batch_size
        Rows per training step.
    learning_rate
        Learning rate of RMSprop.
    """

    k: K
    class_names: Annotated[Names, Parameter(name="--classes")] = ()
    sampler: Literal["subset", "l2x"] = "subset"
    for_class: bool = False
    random_choices: WholeNumber | None = None
    temperature: float | None = None
    epochs: WholeNumber = 20
    batch_size: WholeNumber = 100
    learning_rate: float = 1e-3


@explain.command
def fit(
    rows: Path,
    *,
    model: str,
    out: Out,
    options: Options,
    texts: Texts = Texts(),
    header: bool | None = None,
    ignore: Names = (),
    training: Training = Training(),
) -> None:
    """Train an explainer on a model's predictions for the rows of a file, and save it.

    Parameters
    ----------
    rows
        CSV or Parquet file with texts in one column (--text) or numbers in all columns; NPY file of numbers, or NPZ
        file with an array X.
    model
        The model as module:function, with the module installed or in the current folder. The function takes a list of
        texts, or an array of numbers, and returns class probabilities (n, classes).
    out
        Folder for the explainer.
    header
        Whether the first line of a table has the names of the columns; by default this is detected.
    ignore
        Names of columns that are not for the model, such as an id and the label, separated by spaces. With --text, all
        other columns are ignored.
    """
    from khot._estimators.storage import BLACK_BOX, EXPLAINER
    from khot._files import write_text
    from khot.explain import SubsetExplainer

    place = out.absolute()  # the model may change the working directory
    check_folders(out, EXPLAINER, training.folder)
    masker, parameters = texts.masker(), vars(options) | training.parameters()
    data, names = _read(rows, texts.text, ignore, header)
    if texts.text is None:
        masker.names = names
    predict_proba = _find(model)
    print(f"{rows} has {len(data)} rows")
    if options.temperature is None:
        parameters["temperature"] = "search"
    explainer = SubsetExplainer(**parameters | {"masker": masker, "class_names": options.class_names or None})
    with _called(model):
        explainer.fit(predict_proba, data)
    explainer.save(place)
    about = {"model": model, "text": texts.text, "ignore": list(ignore)}
    write_text(place / BLACK_BOX, json.dumps(about, indent=1) + "\n")
    print(f"temperature {explainer.temperature_:g}, wrote {out}")


@explain.command
def apply(
    explainer: Path,
    rows: Path,
    *,
    model: str | None = None,
    text: str | None = None,
    ignore: Names = (),
    id: str | None = None,
    header: bool | None = None,
    html: Path | None = None,
    json: Path | None = None,
    csv: Path | None = None,
) -> None:
    """Choose the items of the rows of a file, and show them.

    Parameters
    ----------
    explainer
        Folder of an explainer that `khot explain fit` or `SubsetExplainer.save` wrote.
    rows
        A file like that of the training. Columns with names may be in another order.
    model
        The model as module:function, which is imported and called. By default the model of `khot explain fit`, whose
        name is stored with the explainer: look at it (black_box.json) before you use the explainer of someone else.
    text
        Name of the column with the texts, if it is not the one of `khot explain fit`.
    ignore
        Names of columns that are not for the model, in addition to those of `khot explain fit`, separated by spaces.
    id
        Name of a column with names of the rows, which the model gets only if `khot explain fit` used it. By default
        rows are numbered from 0.
    header
        Whether the first line of a table has the names of the columns; by default this is detected.
    html
        File for a page with the chosen items marked.
    json
        File for the chosen items, their scores and the outputs of the model.
    csv
        File for a table of the chosen items. Without --html, --json and --csv, the items are printed.
    """
    from khot._tables import read_texts, write_csv
    from khot.explain import Columns, SubsetExplainer
    from khot.explain.fidelity import post_hoc_accuracy, random_accuracy

    here = Path.cwd()  # the model may change it
    outputs = {"--html": html, "--json": json, "--csv": csv}
    check_outputs(rows, outputs, explainer)
    about = _about(explainer)
    fitted, text = SubsetExplainer.load(explainer), text or about["text"]
    columns = getattr(fitted.masker_, "columns_", [])
    names = None if id is None else read_texts(rows, id)
    check_ignored(ignore, columns, "explainer")
    ignored = {*about["ignore"], *ignore, *filter(None, [id])} - {*columns}
    hint = "or encode them as numbers" if isinstance(fitted.masker_, Columns) else _TEXTS
    data, _ = _read(rows, text, ignored, header, columns, hint)
    model = model or about["model"]
    if not model:
        raise InvalidValueError(f"{explainer} was not written by khot explain fit: name the model (--model)")
    predict_proba = _find(model)
    with _called(model):
        explanation = fitted.explain(data, predict_proba, row_names=names)
    if html is not None:
        explanation.to_html(here / html, title=f"Explanations of {rows.name}")
    if json is not None:
        explanation.to_json(here / json)
    if csv is not None:
        records = explanation.to_records()
        write_csv(here / csv, ["row", "rank", "item", "text", "score"], (list(record.values()) for record in records))
    for path in filter(None, outputs.values()):
        print(f"wrote {path}")
    if not any(outputs.values()):
        print(explanation)
    share = post_hoc_accuracy(explanation)
    with _called(model):
        random = 100 * random_accuracy(explanation, predict_proba).value
    print(
        f"the model predicts the same class from the chosen items alone in {100 * share.value:.1f}% of the rows "
        f"(95% interval {100 * share.low:.1f} to {100 * share.high:.1f}); from as many random items: {random:.1f}%",
        file=sys.stderr,
    )


def _find(model: str) -> Any:
    """The function with a name such as module:function."""
    from importlib import import_module

    module, colon, name = model.partition(":")
    if not (module and colon and name):
        raise InvalidValueError(f"--model must be module:function, but got {model!r}: pass both names")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        hint = f"run khot in the folder of {module}.py, or install it" if missing else f"import {module} to see why"
        if module.endswith(".py"):
            hint = f"name it {module.removesuffix('.py')}:{name}"
        raise InvalidValueError(
            f"--model {model} cannot be imported ({type(error).__name__}: {one_line(error)}): {hint}"
        ) from error
    try:
        found = attrgetter(name)(found)
    except Exception as error:  # a property may raise any exception
        raise InvalidValueError(
            f"--model {model} cannot be found ({one_line(error)}): name a function of {module}"
        ) from error
    if not callable(found):
        raise InvalidValueError(f"--model {model} must be a function, but is a {type(found).__name__}: name another")
    return found


@contextmanager
def _called(model: str) -> Iterator[None]:
    """Call the model in error messages as on the command line, instead of predict_proba."""
    try:
        yield
    except BlackBoxError as error:
        raise BlackBoxError(f"--model {model} {str(error).removeprefix('predict_proba ')}") from error


def _read(
    rows: Path, text: str | None, ignore: Any, header: bool | None, columns: list[str] | None = None, hint: str = _TEXTS
) -> tuple[Any, Any]:
    """Texts, or numbers and the names of their columns, which are in the order of the training's columns if known."""
    from khot._tables import read_matrix, read_texts

    if text is not None:
        return read_texts(rows, text), None
    table = read_matrix(rows, None, ignore, columns, hint, header)
    return table.rows, table.names


def _about(folder: Path) -> dict[str, Any]:
    """Names of the model and of columns that `fit` has stored, or defaults."""
    from khot._estimators.storage import BLACK_BOX

    path = folder / BLACK_BOX
    if not path.exists():
        return {"model": "", "text": None, "ignore": []}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(about["ignore"], list):
            raise TypeError("ignore must be a list of columns")
        text = "" if about["text"] is None else about["text"]
        if not all(isinstance(name, str) for name in [about["model"], text, *about["ignore"]]):
            raise TypeError("model and columns must be texts")
        return about
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is damaged ({error}): train the explainer again") from error
