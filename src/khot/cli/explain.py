"""`khot explain ...`: learn which items of the rows of a file a model rests on, and show them."""

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from khot.cli.files import check_folder_option, check_outputs
from khot.cli.numbers import WholeNumber

explain: App = App(name="explain", help="Explain what a model says about rows by the k items that tell most about it.")


@explain.command
def fit(
    rows: Path,
    *,
    model: str,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    k: Annotated[WholeNumber, Parameter(name=["--k", "-k"])],
    text: str | None = None,
    items: Literal["words", "sentences"] = "words",
    length: WholeNumber | None = None,
    sentences: WholeNumber | None = None,
    header: bool | None = None,
    ignore: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())] = (),
    classes: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())] = (),
    sampler: Literal["subset", "l2x"] = "subset",
    for_class: bool = False,
    random_choices: WholeNumber | None = None,
    temperature: float | None = None,
    epochs: WholeNumber = 20,
    batch_size: WholeNumber = 100,
    learning_rate: float = 1e-3,
    device: Literal["cpu", "cuda", "mps", "auto"] = "cpu",
    seed: WholeNumber = 0,
    folder: Path | None = None,
    resume: bool = False,
) -> None:
    """Train an explainer on what a model says about the rows of a file, and save it.

    Parameters
    ----------
    rows
        A CSV or Parquet file: texts in a column (--text), or numbers in all columns. Or an NPY file of numbers, or an
        NPZ file with an array X.
    model
        The model, as module:function, with the module in the current folder or installed: a function from a list of
        texts, or an array of numbers, to the probabilities (n, classes) of the classes.
    out
        Folder for the explainer.
    k
        Items to choose.
    text
        Name of the column with the texts.
    items
        Whether words or sentences of the texts are chosen.
    length
        Of a text with more words, only the last so many can be chosen, 400 by default; of a longer sentence, the first
        so many words are read, 100 by default. Shorter is quicker.
    sentences
        Of a text with more sentences, only the first so many can be chosen, 15 by default.
    header
        Whether the first line of a table has the names of the columns; by default that is seen from what it holds.
    ignore
        Names of columns that are not for the model, such as an id and the label, with spaces between them. Of a file
        with texts, all columns but that of --text are ignored.
    classes
        Names of the model's classes, with spaces between them, for the pages.
    sampler
        subset for relaxed subset sampling, l2x for the independent samples of L2X.
    for_class
        Choose the items that speak for the class that the model names, not those that tell most about what it says.
    random_choices
        Ask the model also about so many random choices of k items of each row, and learn from its answers: more from as
        many rows, but the model is asked about so many times as many. By default 3 for fewer than 2,000 rows and with
        --for-class, else none.
    temperature
        Temperature of the relaxation; by default the best of five after a short training with each.
    epochs
        Most passes over the data; of few rows as many as the search for the temperature takes, if that is more.
    batch_size
        Rows of a training step.
    learning_rate
        Rate of RMSprop.
    device
        Kind of device for the explainer.
    seed
        Seed of all that is random.
    folder
        Folder to keep the trainings in, so that they can be resumed.
    resume
        Go on with the trainings in the folder of --folder.
    """
    from khot._estimators.storage import BLACK_BOX, EXPLAINER, check_folder
    from khot._files import write_text
    from khot.explain import SubsetExplainer

    here = Path.cwd()  # which the model may change
    check_folder(out, EXPLAINER)
    check_folder_option(folder, out)
    _check_kind(text, items, length, sentences)
    data, names = _read(rows, text, ignore, header)
    predict_proba = _find(model)
    print(f"{rows} has {len(data)} rows")
    explainer = SubsetExplainer(
        k,
        masker=_masker(text, items, length, sentences, names),
        sampler=sampler,
        for_class=for_class,
        random_choices=random_choices,
        temperature="search" if temperature is None else temperature,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        class_names=classes or None,
        device=device,
        random_state=seed,
        folder=None if folder is None else here / folder,
        resume=resume,
        verbose=True,
    )
    explainer.fit(predict_proba, data).save(here / out)
    about = {"model": model, "text": text, "ignore": list(ignore)}
    write_text(here / out / BLACK_BOX, json.dumps(about, indent=1) + "\n")
    print(f"temperature {explainer.temperature_:g}, wrote {out}")


@explain.command
def apply(
    explainer: Path,
    rows: Path,
    *,
    model: str | None = None,
    text: str | None = None,
    ignore: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())] = (),
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
        A file like that of the training; columns with names may have another order.
    model
        The model as module:function, which is imported and called. By default that of `khot explain fit`, whose name
        the explainer has kept: look at it (black_box.json) if the explainer is not your own.
    text
        Name of the column with the texts, if it is another than in `khot explain fit`.
    ignore
        Names of more columns that are not for the model than in `khot explain fit`, with spaces between them.
    id
        Name of a column that names the rows, which else are numbered from 0; it is not for the model either.
    header
        Whether the first line of a table has the names of the columns; by default that is seen from what it holds.
    html
        File for a page with the chosen items marked.
    json
        File for the chosen items, their scores and the outputs of the model.
    csv
        File for a table of the chosen items. Without any of the three, they are printed.
    """
    from khot._tables import read_texts, write_csv
    from khot.explain import SubsetExplainer
    from khot.explain.fidelity import post_hoc_accuracy, random_accuracy

    here = Path.cwd()  # which the model may change
    check_outputs(rows, {"--html": html, "--json": json, "--csv": csv}, explainer)
    about = _about(explainer)
    fitted, text = SubsetExplainer.load(explainer), text or about["text"]
    columns = getattr(fitted.masker_, "columns_", [])
    names = None if id is None else read_texts(rows, id)
    _check_ignored(ignore, columns)
    ignored = {*about["ignore"], *ignore, *filter(None, [id])} - {*columns}
    data, _ = _read(rows, text, ignored, header, columns)
    predict_proba = _find(model or _known(about["model"], explainer))
    explanation = fitted.explain(data, predict_proba, row_names=names)
    if html is not None:
        explanation.to_html(here / html, title=f"Explanations of {rows.name}")
    if json is not None:
        explanation.to_json(here / json)
    if csv is not None:
        records = explanation.to_records()
        write_csv(here / csv, ["row", "rank", "item", "text", "score"], (list(record.values()) for record in records))
    for path in filter(None, (html, json, csv)):
        print(f"wrote {path}")
    if html is None and json is None and csv is None:
        print(explanation)
    share = post_hoc_accuracy(explanation)
    told = f"the model says the same about the chosen items alone in {100 * share.value:.1f}% of the rows"
    random = 100 * random_accuracy(explanation, predict_proba).value
    interval = f"95% interval {100 * share.low:.1f} to {100 * share.high:.1f}"
    print(f"{told} ({interval}); for as many random items: {random:.1f}%", file=sys.stderr)


def _check_kind(text: str | None, items: str, length: int | None, sentences: int | None) -> None:
    """Refuse options for texts with tables, and that for sentences with words."""
    from khot.errors import InvalidValueError

    for option, value in (("--length", length), ("--sentences", sentences)):
        if text is None and value is not None:
            raise InvalidValueError(
                f"{option} is for texts, but there is no --text: drop it, or name the column of texts"
            )
    if items == "words" and sentences is not None:
        raise InvalidValueError("--sentences is for sentences, but words are chosen: pass --items sentences")


def _check_ignored(ignore: Collection[str], columns: Collection[str]) -> None:
    """Refuse to ignore columns that the explainer needs."""
    from khot.errors import InvalidValueError

    for name in ignore:
        if name in columns:
            raise InvalidValueError(f"--ignore must not name {name!r}, which the explainer was fitted with: drop it")


def _masker(text: str | None, items: str, length: int | None, sentences: int | None, names: list[str] | None) -> Any:
    from khot.explain import Columns, Sentences, Words

    if text is None:
        return Columns(names=names)
    given: dict[str, Any] = {
        name: value for name, value in (("length", length), ("sentences", sentences)) if value is not None
    }
    return Words(**given) if items == "words" else Sentences(**given)


def _known(model: str, explainer: Path) -> str:
    """The model whose name `khot explain fit` has kept."""
    from khot.errors import InvalidValueError

    if not model:
        raise InvalidValueError(f"{explainer} was not written by khot explain fit: name the model (--model)")
    return model


def _find(model: str) -> Any:
    """The function of a name such as module:function."""
    from importlib import import_module

    from khot.errors import InvalidValueError, one_line

    module, colon, name = model.partition(":")
    if not (module and colon and name):
        raise InvalidValueError(f"--model must be module:function, but got {model!r}: name both")
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
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # a property may raise any
        raise InvalidValueError(
            f"--model {model} cannot be found ({one_line(error)}): name a function of {module}"
        ) from error
    if not callable(found):
        raise InvalidValueError(f"--model {model} must be a function, but is a {type(found).__name__}: name another")
    return found


def _read(
    rows: Path, text: str | None, ignore: Any, header: bool | None, columns: list[str] | None = None
) -> tuple[Any, Any]:
    """Texts, or numbers and the names of their columns; in the order of the training's columns, if it knew any."""
    from khot._tables import read_matrix, read_texts

    if text is not None:
        return read_texts(rows, text), None
    hint = "or name the column of texts (--text)"
    table = read_matrix(rows, None, ignore, columns, hint=hint, header=header)
    return table.rows, table.names


def _about(folder: Path) -> dict[str, Any]:
    """What `fit` remembered about the file and the model, if it was there."""
    from khot._estimators.storage import BLACK_BOX
    from khot.errors import ModelFileError

    path = folder / BLACK_BOX
    if not path.exists():
        return {"model": "", "text": None, "ignore": []}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        about = {name: about[name] for name in ("model", "text", "ignore")}
        if not isinstance(about["ignore"], list):
            raise TypeError("ignore must be a list of columns")
        text = "" if about["text"] is None else about["text"]
        if not all(isinstance(name, str) for name in [about["model"], text, *about["ignore"]]):
            raise TypeError("model and columns must be texts")
        return about
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is damaged ({error}): train the explainer anew") from error
