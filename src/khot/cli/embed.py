"""`khot embed ...`: learn a map of the rows of a file, and place new rows on it."""

import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from khot.cli.files import check_folder_option, check_inputs, check_outputs
from khot.cli.numbers import WholeNumber

embed: App = App(name="embed", help="Embed rows into a few dimensions so that neighbours stay neighbours.")


@embed.command
def fit(
    rows: Path,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    dimensions: Annotated[WholeNumber, Parameter(name=["--dimensions", "-d"])] = 2,
    labels: str | None = None,
    ignore: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())] = (),
    id: str | None = None,
    method: Literal["subset", "tsne"] = "subset",
    perplexity: float = 4.0,
    scale: Literal["auto", "columns", "raw"] = "auto",
    input_components: WholeNumber | None = None,
    mutual: bool = False,
    encoder: Literal["small", "large"] = "small",
    pretrain: bool = True,
    epochs: WholeNumber = 200,
    batch_size: WholeNumber | None = None,
    learning_rate: float | None = None,
    device: Literal["cpu", "cuda", "mps", "auto"] = "cpu",
    devices: WholeNumber = 1,
    seed: WholeNumber = 0,
    folder: Path | None = None,
    resume: bool = False,
) -> None:
    """Train an encoder, save it, and draw the map.

    Parameters
    ----------
    rows
        A CSV, NPY or Parquet file of numbers, or an NPZ file with an array X, and perhaps labels y. An NPY file may be
        larger than memory.
    out
        Folder for the encoder, the points (points.npy) and, in two dimensions, the map (map.png, map.html).
    dimensions
        Number of dimensions of the embedding.
    labels
        Labels that colour the map and are not used in training: a file (NPY, NPZ with an array y, or CSV or Parquet
        with one column), or the name of a column of the rows.
    ignore
        Names of columns to leave out, with spaces between them.
    id
        Name of a column of a CSV or Parquet file with names of the rows for the page; it is left out as well.
    method
        subset for SubsetSNE, with settings that give better maps than the paper's; tsne for parametric t-SNE.
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
    device
        Kind of device, such as cpu or cuda.
    devices
        Number of processes to train with.
    seed
        Seed of all random numbers.
    folder
        Folder for the checkpoints of the training, from which it can be resumed.
    resume
        Continue the training in --folder.
    """
    import numpy as np

    from khot._estimators.storage import EMBEDDING, LAYOUT, check_folder
    from khot._report.maps import write_map
    from khot._tables import Layout, read_labelled, read_texts, write_layout
    from khot.embed import TUNED, ParametricTSNE, SubsetSNE
    from khot.errors import InvalidValueError

    if mutual and method == "tsne":
        raise InvalidValueError(
            "--mutual is only for the method subset, but got tsne, where all pairs are mutual: leave it out"
        )
    check_folder(out, EMBEDDING)
    check_inputs(out, {"the rows": rows, "--labels": Path(labels or rows)})
    check_folder_option(folder, out)
    row_names = None if id is None else read_texts(rows, id)
    ignored = [*ignore, *([] if id is None or id in (*ignore, labels) else [id])]
    table, colours, names, label = read_labelled(rows, labels, ignored)
    options: dict[str, Any] = {
        "perplexity": perplexity,
        "alpha": TUNED["alpha"],
        "dropout": TUNED["dropout"],
        "scale": scale,
        "input_components": input_components,
        "encoder": encoder,
        "pretrain": pretrain,
        "epochs": epochs,
        "batch_size": min(2000, max(100, len(table) // 10)) if batch_size is None else batch_size,
        "learning_rate": TUNED["learning_rate"] if learning_rate is None else learning_rate,
        "device": device,
        "devices": devices,
        "random_state": seed,
        "verbose": True,
        "folder": folder,
        "resume": resume,
    }
    kind: Any = ParametricTSNE if method == "tsne" else SubsetSNE
    own = {} if method == "tsne" else TUNED | {"mutual": mutual}
    model = kind(dimensions, **own | options)
    points = model.fit(table).transform(table)
    if names:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.save(out)
    write_layout(out / LAYOUT, Layout(names, label, -1, ignored))
    for path in write_map(out, points, colours, f"{rows.name}: {len(table):,} rows", row_names):
        print(f"wrote {path}")


@embed.command
def transform(
    model: Path,
    rows: Path,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    labels: str | None = None,
    ignore: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())] = (),
    id: str | None = None,
    device: Literal["cpu", "cuda", "mps", "auto"] = "cpu",
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
