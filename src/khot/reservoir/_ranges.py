"""Ranges of row numbers that a reservoir has seen."""

from khot.errors import InvalidValueError

Ranges = list[tuple[int, int]]  # first number, and the number after the last; in order, with gaps between them


def united(*parts: Ranges) -> Ranges:
    """The union of ranges that must not overlap."""
    result: Ranges = []
    for first, stop in sorted(span for part in parts for span in part if span[0] < span[1]):
        if result and first < result[-1][1]:
            raise InvalidValueError(
                f"reservoirs must have seen different rows, but both have seen the rows {first} to "
                f"{min(stop, result[-1][1]) - 1}: pass start= to each part, the number of its first row"
            )
        if result and first == result[-1][1]:
            result[-1] = (result[-1][0], stop)
        else:
            result.append((first, stop))
    return result
