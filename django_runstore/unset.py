"""The marker for an argument that was not given, where ``None`` is a value of its own."""

import enum
from typing import Final, Literal, TypeAlias


class Unset(enum.Enum):
    """Type of the one value ``UNSET``; an enum, so that ``is`` narrows it for type checkers."""

    UNSET = "unset"

    def __repr__(self) -> str:
        """Read as the name users import."""
        return "UNSET"


UNSET: Final = Unset.UNSET
UnsetType: TypeAlias = Literal[Unset.UNSET]
