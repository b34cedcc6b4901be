"""Compare JSON values by what they say, not by how they are written."""

from collections.abc import Iterator
from typing import cast


def structurally_equal(first: object, second: object) -> bool:
    """
    Say whether two JSON values mean the same.

    The order of an object's keys is ignored and that of a list matters; a
    missing key is not a null; 1 equals 1.0 and neither equals ``True``.

    Args:
        first: A value from ``admit_json`` or ``parse_json_text``.
        second: Another. Anything that is not plain JSON equals nothing.

    Spec: run-store 5.3, 9.6.
    """
    # Pairs of containers seen before need no second look: what makes one of
    # them unequal is found where it was met first. It also ends every walk.
    seen: set[tuple[int, int]] = set()
    waiting: list[Iterator[tuple[object, object]]] = [iter([(first, second)])]
    while waiting:
        for left, right in waiting[-1]:
            if type(left) is dict or type(left) is list:
                pair = (id(left), id(right))
                if pair in seen:
                    continue
                members = _paired_members(left, right)
                if members is None:
                    return False
                seen.add(pair)
                waiting.append(members)
                break
            if not _equal_scalars(left, right):
                return False
        else:
            waiting.pop()
    return True


def _paired_members(left: object, right: object) -> Iterator[tuple[object, object]] | None:
    """Line up the members of two containers, or find that they cannot be equal."""
    if type(left) is not type(right):
        return None
    if type(left) is dict:
        return _paired_values(left, cast("dict[object, object]", right))
    ours, theirs = cast("list[object]", left), cast("list[object]", right)
    return zip(ours, theirs, strict=True) if len(ours) == len(theirs) else None


def _paired_values(
    left: dict[object, object], right: dict[object, object]
) -> Iterator[tuple[object, object]] | None:
    if left.keys() != right.keys():
        return None
    return ((member, right[key]) for key, member in left.items())


def _equal_scalars(left: object, right: object) -> bool:
    # By exact type, because True == 1 and because another type's __eq__ may
    # answer anything.
    if left is None or type(left) is bool:
        return left is right
    if type(left) is str:
        return type(right) is str and left == right
    return _is_number(left) and _is_number(right) and left == right


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float
