"""Objects whose every inspection runs code that fails, and a list of who ran it."""

from collections.abc import Callable
from typing import Any

from django_runstore import OwnerId, RunSnapshot

touched: list[str] = []


def _booming(name: str) -> Callable[..., Any]:
    def boom(*_: object, **__: object) -> Any:
        touched.append(name)
        raise RuntimeError(name)

    return boom


def hostile(base: type, *methods: str, **members: Any) -> type:
    """Make a subclass of ``base`` whose named methods note that they ran, and fail."""
    return type(f"Hostile{base.__name__}", (base,), {m: _booming(m) for m in methods} | members)


_COMPARING = ("__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__")
_SHOWING = ("__str__", "__repr__", "__format__")
_HOLDING = ("__iter__", "__len__", "__contains__", "__getitem__", "items", "keys", "values")

Mute = hostile(
    object,
    *_COMPARING,
    *_SHOWING,
    *_HOLDING,
    "__getattribute__",
    "__int__",
    "__index__",
    __class__=property(_booming("__class__")),
)
Pretender = hostile(object, *_COMPARING, "__getattr__", __class__=property(lambda _: OwnerId))
OfNoClass = hostile(type, "__eq__", "__hash__")("OfNoClass", (), {})
Owner = hostile(OwnerId, "__getattribute__")
Snapshot = hostile(RunSnapshot, "__getattribute__")
Text = hostile(str, *_COMPARING, *_SHOWING, *_HOLDING[:4], "encode", __slots__=())
Number = hostile(int, *_COMPARING, *_SHOWING, "__int__", "__index__", "__abs__")
Dict = hostile(dict, *_HOLDING)
List = hostile(list, *_HOLDING[:4])

HOSTILE: dict[str, Callable[[], Any]] = {
    "mute": Mute,
    "pretender": Pretender,
    "instance of an incomparable class": OfNoClass,
    "incomparable class": lambda: OfNoClass,
    "subclass of an owner": lambda: Owner("host-a", 101, "owner-a"),
    "subclass of a snapshot": lambda: Snapshot("pending"),
    "subclass of dict": lambda: Dict(a=1),
    "subclass of list": lambda: List(["a"]),
}
