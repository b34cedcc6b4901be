"""Admit Python values as JSON: a detached copy, or a complaint."""

import math
import re
import types
from collections.abc import Sized
from typing import TypeAlias, cast

from django_runstore.durable import complaints
from django_runstore.durable.complaints import JsonComplaint
from django_runstore.durable.integers import exact_integer
from django_runstore.durable.json_sizes import container_bytes, number_bytes, text_bytes
from django_runstore.durable.text import exact_text, is_well_formed

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

MAX_JSON_DEPTH = 128
MAX_JSON_VALUES = 100_000
MAX_JSON_MEMBERS = 100_000

# Every integer of fewer bits than this is a finite float.
_FLOAT_BITS = 1024

# What JSON has no form for and people still pass. Words of our own: the name of
# a class is the caller's data.
_NON_JSON_TYPES = (
    (bytes, "bytes"),
    (bytearray, "bytearray"),
    (memoryview, "memoryview"),
    (complex, "complex"),
    (types.EllipsisType, "ellipsis"),
    (types.FunctionType, "function"),
    (types.BuiltinFunctionType, "function"),
    (types.MethodType, "function"),
    (type, "class"),
)

# A key that reads like a field name. Anything else (an address, a token) may be
# data and is shown by position only.
_FIELD_NAME = re.compile(r"[A-Za-z_]{1,32}[0-9]{0,3}")
_SHOWN_STEPS = 16


def admit_json(value: object, *, max_bytes: int | None = None) -> JsonValue:
    """
    Copy ``value`` into plain JSON values that nobody else holds.

    Admitted are ``None``, ``bool``, finite numbers, well-formed strings, and
    ``dict`` (with string keys), ``list`` and ``tuple`` themselves. A tuple is
    admitted because rows and step results are tuples and ``json`` writes them
    as lists; the copy has a list in its place, as it will be read back. Other
    subclasses of containers are refused, since reading one runs its code;
    subclasses of ``str``, ``int`` and ``float`` are copied into the plain type.
    The same list or dict may appear many times, only not inside itself.

    Integers are kept exactly, however large, as long as they are finite as a
    float: JavaScript would round one above 2**53.

    Args:
        value: Anything. None of its code is run.
        max_bytes: The most bytes the value may cost, or ``None`` for no limit.
            A float is charged as JavaScript writes it: ``1.0`` costs 1.

    Returns:
        A copy with the order of members kept.

    Raises:
        JsonComplaint: the first rule that is broken, and where.

    Spec: run-store 9.3.
    """
    return JsonAdmission(max_bytes).admit(value)


class _OpenList:
    """A list or tuple whose members are being copied."""

    __slots__ = ("copy", "index", "remaining", "source")

    def __init__(self, source: Sized, members: list[object]) -> None:
        self.source = source
        self.remaining = iter(members)
        self.index = -1
        self.copy: list[JsonValue] = []

    def put(self, member: JsonValue) -> None:
        self.copy.append(member)

    def step(self) -> str:
        """Name the member at hand in a path."""
        return f"[{self.index}]"


class _OpenObject:
    """A dict whose members are being copied; its keys are already admitted."""

    __slots__ = ("copy", "index", "keys", "remaining", "source")

    def __init__(self, source: Sized, keys: list[str], members: list[object]) -> None:
        self.source = source
        self.keys = keys
        self.remaining = iter(members)
        self.index = -1
        self.copy: dict[str, JsonValue] = {}

    def put(self, member: JsonValue) -> None:
        self.copy[self.keys[self.index]] = member

    def step(self) -> str:
        """Name the member at hand in a path."""
        key = self.keys[self.index]
        return f".{key}" if _FIELD_NAME.fullmatch(key) else f"{{{self.index}}}"


class JsonAdmission:
    """
    One walk over one value, depth first and in order, without recursion.

    A subclass may admit more or less of something; what it admits is copied all the same.
    """

    most_values = MAX_JSON_VALUES
    most_members = MAX_JSON_MEMBERS
    greatest_depth = MAX_JSON_DEPTH
    too_deep = complaints.DEPTH

    def __init__(self, max_bytes: int | None = None) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self.values = 0
        self.members = 0
        self.open: list[_OpenList | _OpenObject] = []
        self.open_ids: set[int] = set()

    def admit(self, root: object) -> JsonValue:
        """Copy the value; to be called once."""
        admitted = self._copy(root)
        while self.open:
            container = self.open[-1]
            for member in container.remaining:
                container.index += 1
                container.put(self._copy(member))
                if self.open[-1] is not container:
                    break  # The member is a container: fill it before going on.
            else:
                self.open.pop()
                self.open_ids.remove(id(container.source))
        return admitted

    def _copy(self, value: object) -> JsonValue:
        """Copy a scalar, or open a container that ``admit`` then fills."""
        if len(self.open) > self.greatest_depth:
            raise self._complaint(self.too_deep)
        self.values += 1
        if self.values > self.most_values:
            raise self._complaint(complaints.VALUES)
        if type(value) is str:
            return self._copy_text(value)
        if type(value) is int:
            return self._copy_integer(value)
        if type(value) is dict:
            return self._open_object(value)
        if type(value) is list or type(value) is tuple:
            return self._open_array(value)
        return self._copy_rarer(value)

    def _copy_rarer(self, value: object) -> JsonValue:
        if value is None or value is True:
            self._charge(4)
            return value
        if value is False:
            self._charge(5)
            return value
        text = exact_text(value)
        if text is not None:
            return self._copy_text(text)
        integer = exact_integer(value)
        if integer is not None:
            return self._copy_integer(integer)
        if issubclass(type(value), float):
            return self._copy_float(float.__float__(cast("float", value)))
        raise self._complaint(_foreign(value))

    def _copy_text(self, text: str) -> str:
        if not self._charge_text(text):
            raise self._complaint(complaints.TEXT)
        return text

    def _copy_integer(self, integer: int) -> int:
        # Also what keeps the interpreter's limit on the digits of an integer out
        # of sight: it is never below 640, and no finite float has more than 309.
        if integer.bit_length() >= _FLOAT_BITS and not _is_finite(integer):
            raise self._complaint(complaints.NON_FINITE)
        if self.max_bytes is not None:
            self._charge(number_bytes(integer))
        return integer

    def _copy_float(self, number: float) -> float:
        if not math.isfinite(number):
            raise self._complaint(complaints.NON_FINITE)
        if self.max_bytes is not None:
            self._charge(number_bytes(number))
        return number

    def _open_array(self, source: list[object] | tuple[object, ...]) -> list[JsonValue]:
        self._enter(source)
        # Read once: another thread may go on changing the caller's list.
        members = list(source)
        container = _OpenList(source, members)
        self._open(container, len(members))
        return container.copy

    def _open_object(self, source: dict[object, object]) -> dict[str, JsonValue]:
        self._enter(source)
        try:
            members = self._read_members(source)
        except RuntimeError:
            members = None
        if members is None:
            raise self._complaint(complaints.INSPECTION)
        keys = [self._copy_key(key, index) for index, (key, _) in enumerate(members)]
        container = _OpenObject(source, keys, [member for _, member in members])
        self._open(container, len(members))
        return container.copy

    def _read_members(self, source: dict[object, object]) -> list[tuple[object, object]]:
        """
        Read a dict once.

        Not ``source.copy()``: that compares keys of equal hash, and a key may be a
        subclass of ``str`` with an ``__eq__`` of its own.

        Raises:
            RuntimeError: the dict changed meanwhile. On Python 3.11 a collection in
                between lets another thread in.
        """
        return list(source.items())

    def _copy_key(self, key: object, index: int) -> str:
        text = exact_text(key)
        if text is None or not self._charge_text(text):
            raise self._complaint(complaints.KEY, f"{{{index}}}")
        self._charge(1)
        return text

    def _enter(self, source: Sized) -> None:
        if id(source) in self.open_ids:
            raise self._complaint(complaints.CYCLE)
        # Before the members are read, so that a huge container costs nothing.
        if self.members + len(source) > self.most_members:
            raise self._complaint(complaints.MEMBERS)

    def _open(self, container: _OpenList | _OpenObject, members: int) -> None:
        self._charge(container_bytes(members))
        self.members += members
        self.open.append(container)
        self.open_ids.add(id(container.source))

    def _charge_text(self, text: str) -> bool:
        """Charge a string or a key; false when it could never be admitted."""
        if not is_well_formed(text):
            return False
        if self.max_bytes is not None:
            size = text_bytes(text)
            if size > self.max_bytes:
                return False
            self._charge(size)
        return True

    def _charge(self, count: int) -> None:
        if self.max_bytes is None:
            return
        self.bytes += count
        if self.bytes > self.max_bytes:
            raise self._complaint(complaints.BYTES)

    def _complaint(self, text: str, last_step: str = "") -> JsonComplaint:
        steps = [container.step() for container in self.open]
        if len(steps) > _SHOWN_STEPS:
            half = _SHOWN_STEPS // 2
            steps[half:-half] = ["..."]
        return JsonComplaint(text, "".join(["$", *steps, last_step]))


def _is_finite(integer: int) -> bool:
    try:
        float(integer)
    except OverflowError:
        return False
    return True


def _foreign(value: object) -> str:
    # Compared one by one, because looking a class up in a dict runs the
    # __hash__ of its metaclass.
    kind = type(value)
    for non_json_type, name in _NON_JSON_TYPES:
        if kind is non_json_type:
            return complaints.non_json(name)
    return complaints.NON_PLAIN
