"""The explanation of rows, and its forms: a table, JSON, a page, lines for a terminal."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from khot import _checks
from khot._files import write_text
from khot.errors import InvalidValueError, NotAvailableError
from khot.explain.maskers import Masker
from khot.explain.maskers.forms import data_frame
from khot.explain.maskers.items import take


@dataclass(frozen=True, eq=False)
class Explanation:
    """The chosen items of rows.

    Attributes
    ----------
    masker : Masker
        The fitted masker that defines the items.
    rows : array, data frame, tensor, or list of texts
        The explained rows.
    chosen : ndarray of bool, shape (n, items)
        Which items were chosen.
    scores : ndarray of float32, shape (n, items)
        Logits of the items, -inf for absent ones.
    full, masked : ndarray of float32, shape (n, classes), or None
        Class probabilities that the model predicts from the whole rows, and from the chosen items alone.
    class_names : sequence of str, or None
        Names of the classes. None numbers them from 0.
    row_names : sequence of int or str, or None
        Names of the rows, such as ids. None numbers them from 0.
    eligible : ndarray of bool, shape (n, items), or None
        Which items the explainer was free to choose, without the forced ones. None stands for all that are present.
    """

    masker: Masker = field(repr=False)
    rows: Any = field(repr=False)
    chosen: NDArray[np.bool_] = field(repr=False)
    scores: NDArray[np.float32] = field(repr=False)
    full: NDArray[np.float32] | None = field(repr=False, default=None)
    masked: NDArray[np.float32] | None = field(repr=False, default=None)
    class_names: Sequence[str] | None = field(repr=False, default=None)
    row_names: Sequence[int | str] | None = field(repr=False, default=None)
    eligible: NDArray[np.bool_] | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        return f"Explanation({len(self)} rows, {int(self.chosen.sum())} items chosen)"

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def items(self) -> list[list[str]]:
        """Texts of the chosen items of each row, in their order."""
        return [
            [text for text, item in self._pieces(row) if item is not None and self.chosen[row, item]]
            for row in range(len(self))
        ]

    @property
    def free(self) -> NDArray[np.bool_]:
        """Flags (n, items) of the items that the explainer was free to choose."""
        return self.scores > -np.inf if self.eligible is None else self.eligible

    @property
    def outputs(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class probabilities for the whole rows and for the chosen items alone; an error if there are none."""
        if self.full is None or self.masked is None:
            raise InvalidValueError(
                "the explanation has no outputs of the model: pass predict_proba to SubsetExplainer.explain"
            )
        return self.full, self.masked

    @property
    def agrees(self) -> NDArray[np.bool_]:
        """Whether the model predicts the same class from the chosen items alone as from the whole row, for each row."""
        full, masked = self.outputs
        return full.argmax(1) == masked.argmax(1)

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each chosen item: the row, the rank of its score from 1, the item, its text and its score."""
        return [{"row": self._name(row), **record} for row in range(len(self)) for record in self._records(row)]

    def _records(self, row: int) -> list[dict[str, Any]]:
        texts = {item: text for text, item in self._pieces(row)}
        numbers = np.flatnonzero(self.chosen[row])
        order = np.argsort(-self.scores[row, numbers], kind="stable")
        return [
            {"rank": rank, "item": item, "text": texts[item], "score": float(self.scores[row, item])}
            for rank, item in enumerate(numbers[order].tolist(), 1)
        ]

    def to_frame(self, backend: str = "pandas") -> Any:
        """Data frame of the records.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            Package of the data frame, which must be installed.
        """
        import narwhals

        _checks.choice("backend", backend, ("pandas", "polars", "pyarrow"))
        records = self.to_records()
        names = ("row", "rank", "item", "text", "score")
        data = {name: [record[name] for record in records] for name in names}
        try:
            return narwhals.from_dict(data, backend=backend).to_native()  # pyright: ignore[reportArgumentType]
        except ModuleNotFoundError as error:
            raise NotAvailableError(
                f"to_frame needs {backend}, which is not installed: pip install {backend}, or use to_records()"
            ) from error

    def to_json(self, path: Path | str | None = None) -> str:
        """Chosen items and outputs of the model as JSON, which is also written to a file if a path is given."""
        rows: list[dict[str, Any]] = [{"row": self._name(row), "items": self._records(row)} for row in range(len(self))]
        for name, outputs in (("full", self.full), ("masked", self.masked)):
            if outputs is not None:
                for row, output in zip(rows, outputs.tolist(), strict=True):
                    row[name] = output
        text = json.dumps(rows, indent=1, ensure_ascii=False)
        if path is not None:
            write_text(Path(path), text + "\n")
        return text

    def to_html(self, path: Path | str, title: str = "Explanation") -> None:
        """Write a self-contained page that shows each row with its chosen items marked, and the model's probabilities.

        Text beyond the items that can be chosen is grey.
        """
        from khot._report.explanations import write_explanations

        says = []
        if self.full is not None and self.masked is not None:
            share = f"{100 * self.agrees.mean():.1f}% of {len(self)} rows"
            says.append(f"The model predicts the same class from the chosen items alone in {share}.")
        if not hasattr(self.masker, "picture"):
            says.append("The stronger the mark, the higher the score of the item.")
        write_explanations(Path(path), title, [self._row_html(row) for row in range(len(self))], " ".join(says))

    def _repr_html_(self) -> str:
        from khot._report.explanations import STYLE

        shown = min(len(self), 20)
        rest = f"<p>and {len(self) - shown} more</p>" if shown < len(self) else ""
        return f"<style>{STYLE}</style>" + "".join(self._row_html(row) for row in range(shown)) + rest

    def __str__(self) -> str:
        return "\n\n".join(self._row_text(row) for row in range(len(self)))

    def _row(self, row: int) -> Any:
        one = take(self.rows, slice(row, row + 1))
        if hasattr(one, "iloc"):
            return one.iloc[0]
        return one[0] if data_frame(one) is None else one

    def _pieces(self, row: int) -> list[tuple[str, int | None]]:
        pieces = self.masker.pieces(self._row(row))
        return [(text if item is None else text.strip(), item) for text, item in pieces]

    def _row_html(self, row: int) -> str:
        from khot._report.explanations import picture

        draw = getattr(self.masker, "picture", None)
        if draw is not None:
            scores = (f"{record['text']} (score {record['score']:.3g})" for record in self._records(row))
            marked = picture(draw(self._row(row), self.chosen[row]), f"chosen: {', '.join(scores)}")
        else:
            marked = "".join(self._piece_html(row, text, item) for text, item in self._separated(row))
        return f'<article class="khot"><p class="says">{escape(self._heading(row))}</p><p>{marked}</p></article>'

    def _piece_html(self, row: int, text: str, item: int | None) -> str:
        if item is None and any(letter.isalnum() for letter in text):
            return f'<span class="beyond" title="beyond what can be chosen">{escape(text)}</span>'
        if item is None or not self.chosen[row, item]:
            return escape(text)
        scores = self.scores[row, self.chosen[row]]
        strength = 30 + 70 * float((scores <= self.scores[row, item]).mean())
        style = f"background: rgb(255 205 80 / {strength:.0f}%)"
        return f'<mark style="{style}" title="score {self.scores[row, item]:.3g}">{escape(text)}</mark>'

    def _row_text(self, row: int) -> str:
        text = "".join(
            f"[{text}]" if item is not None and self.chosen[row, item] else text for text, item in self._separated(row)
        )
        return f"{self._heading(row)}\n{text}".strip()

    def _separated(self, row: int) -> list[tuple[str, int | None]]:
        """The pieces, with a separator between adjacent items, such as columns."""
        pieces: list[tuple[str, int | None]] = []
        for text, item in self._pieces(row):
            if item is not None and pieces and pieces[-1][1] is not None:
                pieces.append((" · ", None))
            pieces.append((text, item))
        return pieces

    def _heading(self, row: int) -> str:
        if self.full is None or self.masked is None:
            return f"row {self._name(row)}"
        label, other = int(self.full[row].argmax()), int(self.masked[row].argmax())
        full, masked = self.full[row, label], self.masked[row, label]
        text = f"row {self._name(row)}, {self._class(label)}: {full:.3f} on the whole, {masked:.3f} on the chosen items"
        return text if other == label else f"{text}, with {self._class(other)} at {self.masked[row, other]:.3f}"

    def _name(self, row: int) -> int | str:
        return row if self.row_names is None else self.row_names[row]

    def _class(self, label: int) -> str:
        return f"class {label}" if self.class_names is None else self.class_names[label]
