"""`khot knn ...`: train a neighbour classifier on a file, and predict with it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from khot._relaxations import RELAXATIONS, find
from khot.cli.files import check_folders, check_outputs
from khot.cli.options import Device, K, Names, Out, Training, WholeNumber, check_ignored

if TYPE_CHECKING:
    RelaxationName = str
else:
    RelaxationName = Literal[*RELAXATIONS]

knn: App = App(name="knn", help="Classify rows by their k nearest neighbours in learned features.")


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """Parameters of a classifier.

    Parameters
    ----------
    n_neighbors
        Number of neighbours that vote.
    encoder
        Encoder; by default mlp for tables and convnet for images.
    relaxation
        Relaxation by which neighbours are sampled in training; neuralsort is the method of Grover et al.
    temperature
        Temperature of the relaxation.
    n_candidates
        Number of candidates in a training step.
    epochs
        Number of passes over the data.
    batch_size
        Number of rows in a training step.
    learning_rate
        Learning rate of Adam.
    validation_share
        Share of the rows that is held out to find the best epoch.
    augment
        Move images at random, mirror half of them, or both.
    devices
        Number of processes to train with.
    precision
        Precision of the encoder in training.
    """

    n_neighbors: K = 9
    encoder: Literal["mlp", "convnet", "resnet"] | None = None
    relaxation: RelaxationName = "successive_softmax"
    temperature: float = 1.0
    n_candidates: Annotated[WholeNumber, Parameter(name="--candidates")] = 100
    epochs: WholeNumber = 20
    batch_size: WholeNumber = 100
    learning_rate: float = 1e-3
    validation_share: float = 0.1
    augment: Literal["none", "crop", "flip", "both"] = "none"
    devices: WholeNumber = 1
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"


@knn.command
def fit(
    train: Path,
    *,
    out: Out,
    label: str | None = None,
    header: bool | None = None,
    ignore: Names = (),
    options: Options = Options(),
    training: Training = Training(),
) -> None:
    """Train a classifier and save it.

    Parameters
    ----------
    train
        Rows with labels: an NPZ file with arrays X and y, or a CSV file whose last column is the label.
    out
        Folder for the classifier.
    label
        Name of the label column of a CSV file, if it is not the last.
    header
        Whether the first line of a CSV file holds names; by default if it has no number, or a word above numbers.
    ignore
        Names of columns of a CSV file to leave out, such as ids, separated by spaces.
    """
    from khot._estimators.storage import CLASSIFIER, LAYOUT
    from khot._tables import read_rows, write_layout
    from khot.neighbors import SubsetKNNClassifier

    check_folders(out, CLASSIFIER, training.folder)
    rows, labels, layout = read_rows(train, label, header, ignore)
    print(f"read {_summary(rows, labels, layout)}")
    parameters = vars(options) | {
        "relaxation": find(options.relaxation),
        "encoder": options.encoder or ("mlp" if rows.ndim == 2 else "convnet"),
    }
    model = SubsetKNNClassifier(**parameters, **training.parameters())
    model.fit(rows, labels).save(out)
    if layout is not None:
        write_layout(out / LAYOUT, layout)
    print(f"wrote {out}, with the weights of epoch {model.best_epoch_ + 1}")


def _summary(rows: Any, labels: Any, layout: Any) -> str:
    """Description of the data, so that the user can check it."""
    import numpy as np

    size = " × ".join(map(str, rows.shape[1:]))
    what = f"{len(rows)} images of {size}" if rows.ndim > 2 else f"{len(rows)} rows of {size} columns"
    names = f" ({_some(layout.columns)})" if layout is not None and layout.columns else ""
    found, counts = np.unique(labels, return_counts=True)
    classes = _some([f"{label} ({count})" for label, count in zip(found, counts, strict=True)])
    return f"{what}{names} with {len(found)} classes: {classes}"


def _some(words: list[str]) -> str:
    return ", ".join(words if len(words) <= 6 else [*words[:5], "…", words[-1]])


@knn.command
def predict(
    model: Path,
    rows: Path,
    *,
    out: Out | None = None,
    evidence: Path | None = None,
    probabilities: Path | None = None,
    label: str | None = None,
    header: bool | None = None,
    ignore: Names = (),
    device: Device = "cpu",
) -> None:
    """Predict labels, and list the neighbours on which they are based.

    The columns of a CSV file may come in another order than in training if both files have names. If the file has
    labels, the accuracy is printed to stderr at the end.

    Parameters
    ----------
    model
        Folder of a classifier that `khot knn fit` wrote.
    rows
        An NPZ file with an array X, or a CSV file, with or without labels.
    out
        CSV file for the predictions; by default they are printed.
    evidence
        CSV file for the neighbours: row, rank, index of the training row (from 0), distance and label.
    probabilities
        CSV file for the share of votes of each class.
    label
        Name of the label column of a CSV file, if it is not the one of the training.
    header
        Whether the first line of a CSV file holds names; by default if it has no number, or a word above numbers.
    ignore
        Names of columns of a CSV file to leave out, in addition to those of `khot knn fit`, separated by spaces.
    device
        Kind of device, such as cpu or cuda.
    """
    from khot._estimators.storage import LAYOUT
    from khot._tables import read_layout, read_queries, write_csv
    from khot.neighbors import SubsetKNNClassifier

    check_outputs(rows, {"--out": out, "--evidence": evidence, "--probabilities": probabilities}, model)
    classifier = SubsetKNNClassifier.load(model, device=device)
    layout = read_layout(model / LAYOUT)
    check_ignored(ignore, layout.columns or () if layout else (), "classifier")
    queries, labels = read_queries(rows, classifier.shape_[0], layout, label, header, ignore)
    neighbors = classifier.kneighbors(queries)
    predictions = classifier.vote(*neighbors)
    if evidence is not None:
        write_csv(evidence, ["row", "rank", "neighbor", "distance", "label"], classifier.evidence(*neighbors))
    if probabilities is not None:
        write_csv(probabilities, list(classifier.classes_), classifier.shares(*neighbors).round(6).tolist())
    if out is None:
        print("prediction", *predictions, sep="\n")
    else:
        write_csv(out, ["prediction"], ([label] for label in predictions))
    if labels is not None:
        print(_accuracy(predictions, labels, classifier.classes_), file=sys.stderr)


def _accuracy(predictions: Any, labels: Any, classes: Any) -> str:
    """Share of right predictions. Labels are compared as texts, since those of a file may all be texts."""
    import numpy as np

    wanted, got, known = (np.array([_written(label) for label in part]) for part in (labels, predictions, classes))
    unknown = np.setdiff1d(wanted, known)
    text = f"accuracy {(got == wanted).mean():.4f}"
    return text + (f" (the model does not know the label {str(unknown[0])!r})" if len(unknown) else "")


def _written(label: Any) -> str:
    """Label as text; whole numbers have no decimal point."""
    text = str(label)
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else text
