"""Tables in and out: rows and labels from CSV, NPY, NPZ and Parquet files, and CSV files to write. No torch."""

from khot._tables.labelled import read_queries, read_rows
from khot._tables.labels import read_labels
from khot._tables.layout import Layout, read_layout, write_layout
from khot._tables.matrix import Table, read_labelled, read_matrix, read_named, read_texts
from khot._tables.writing import check_points, write_csv, write_points

__all__ = [
    "Layout",
    "Table",
    "check_points",
    "read_labelled",
    "read_labels",
    "read_layout",
    "read_matrix",
    "read_named",
    "read_queries",
    "read_rows",
    "read_texts",
    "write_csv",
    "write_layout",
    "write_points",
]
