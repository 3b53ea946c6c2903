"""`khot embed ...`: learn a map of the rows of a file, and place new rows on it."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from khot.cli.files import check_folders, check_inputs, check_outputs
from khot.cli.options import Device, Names, Out, Training, WholeNumber
from khot.errors import InvalidValueError

embed: App = App(name="embed", help="Embed rows into a few dimensions so that neighbours stay neighbours.")


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """Parameters of an embedding.

    Parameters
    ----------
    n_components
        Number of dimensions of the embedding.
    perplexity
        Roughly the number of neighbours that matter.
    scale
        auto to divide all columns by one standard deviation, if they share a unit; columns to divide each column by its
        own; raw to use rows as they are, such as pixels between 0 and 1.
    input_components
        Number of principal components by which rows are compared, which leaves out noise; by default all columns.
    mutual
        Make each row a likely neighbour of its neighbours as well, with the method subset; it improves some maps.
    encoder
        Size of the network.
    pretrain
        Whether to train the layers one by one first.
    epochs
        Number of passes over the data.
    batch_size
        Number of rows in a training step; by default a tenth of the rows, but from 100 to 2,000.
    learning_rate
        Learning rate of Adam; by default one cycle up to 0.01.
    devices
        Number of processes to train with.
    """

    n_components: Annotated[WholeNumber, Parameter(name=["--dimensions", "-d"])] = 2
    perplexity: float = 4.0
    scale: Literal["auto", "columns", "raw"] = "auto"
    input_components: WholeNumber | None = None
    mutual: bool = False
    encoder: Literal["small", "large"] = "small"
    pretrain: bool = True
    epochs: WholeNumber = 200
    batch_size: WholeNumber | None = None
    learning_rate: float | None = None
    devices: WholeNumber = 1


@embed.command
def fit(
    rows: Path,
    *,
    out: Out,
    labels: str | None = None,
    ignore: Names = (),
    id: str | None = None,
    method: Literal["subset", "tsne"] = "subset",
    options: Options = Options(),
    training: Training = Training(),
) -> None:
    """Train an encoder, save it, and draw the map.

    Parameters
    ----------
    rows
        A CSV, NPY or Parquet file of numbers, or an NPZ file with an array X, and perhaps labels y. An NPY file may be
        larger than memory.
    out
        Folder for the encoder, the points (points.npy) and, in two dimensions, the map (map.png, map.html).
    labels
        Labels that colour the map and are not used in training: a file (NPY, NPZ with an array y, or CSV or Parquet
        with one column), or the name of a column of the rows.
    ignore
        Names of columns to leave out, with spaces between them.
    id
        Name of a column of a CSV or Parquet file with names of the rows for the page; it is left out as well.
    method
        subset for SubsetSNE, with settings that give better maps than the paper's; tsne for parametric t-SNE.
    """
    import numpy as np

    from khot._estimators.storage import EMBEDDING, LAYOUT
    from khot._report.maps import write_map
    from khot._tables import Layout, read_labelled, read_texts, write_layout

    if options.mutual and method == "tsne":
        raise InvalidValueError(
            "--mutual is only for the method subset, but got tsne, where all pairs are mutual: leave it out"
        )
    check_folders(out, EMBEDDING, training.folder)
    check_inputs(out, {"the rows": rows, "--labels": Path(labels or rows)})
    row_names = None if id is None else read_texts(rows, id)
    ignored = [*ignore, *([] if id is None or id in (*ignore, labels) else [id])]
    table, colours, names, label = read_labelled(rows, labels, ignored)
    model = _new_model(method, options, training, len(table))
    points = model.fit(table).transform(table)
    if names:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.save(out)
    write_layout(out / LAYOUT, Layout(names, label, -1, ignored))
    for path in write_map(out, points, colours, f"{rows.name}: {len(table):,} rows", row_names):
        print(f"wrote {path}")


def _new_model(method: str, options: Options, training: Training, rows: int) -> Any:
    """Unfitted model, with khot's own settings where there is no option."""
    from khot.embed import TUNED, ParametricTSNE, SubsetSNE

    kind: Any = SubsetSNE if method == "subset" else ParametricTSNE
    chosen = {"batch_size": min(2000, max(100, rows // 10)), **TUNED, **training.parameters()}
    chosen |= {name: value for name, value in vars(options).items() if value is not None}
    known = kind().get_params()
    return kind(**{name: value for name, value in chosen.items() if name in known})


@embed.command
def transform(
    model: Path,
    rows: Path,
    *,
    out: Out,
    labels: str | None = None,
    ignore: Names = (),
    id: str | None = None,
    device: Device = "cpu",
) -> None:
    """Embed rows with a trained encoder.

    Parameters
    ----------
    model
        Folder that `khot embed fit` wrote.
    rows
        A file as for `khot embed fit`. If both have names of columns, their order does not matter. Columns that were
        ignored in training, and the column of the labels, are left out.
    out
        NPY or CSV file for the points.
    labels
        Name of a column of labels to leave out, if it is not the one of the training.
    ignore
        Names of further columns to leave out, with spaces between them.
    id
        Name of a column with names of the rows, which is left out and becomes the first column of a CSV file of points.
    device
        Kind of device, such as cpu or cuda.
    """
    from khot._estimators.storage import LAYOUT
    from khot._tables import Layout, check_points, read_layout, read_matrix, read_texts, write_points
    from khot.embed import load

    check_outputs(rows, {"--out": out}, model)
    check_points(out, named=id is not None)
    embedding = load(model, device=device)
    layout = read_layout(model / LAYOUT) or Layout(None, None, -1)
    row_names = None if id is None else (id, read_texts(rows, id))
    kept = {None, labels, *(layout.columns or [])}
    left_out = [name for name in [*layout.ignored, *ignore, id, layout.label] if name not in kept]
    table = read_matrix(rows, labels, left_out, layout.columns or [])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # the columns are in the right order
        points = embedding.transform(table.rows)
    write_points(out, points, list(embedding.get_feature_names_out()), row_names)
    print(f"wrote {out}")
