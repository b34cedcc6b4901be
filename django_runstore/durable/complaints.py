"""Name what is wrong with a JSON value, in fixed words that repeat none of it."""

NON_FINITE = "contains a non-finite number"
TEXT = "contains unbounded or ill-formed text"
KEY = "contains an unbounded or ill-formed object key"
CYCLE = "contains a cycle"
NON_PLAIN = "contains a non-plain object"
INSPECTION = "cannot be inspected without executing object code"
DEPTH = "exceeds the maximum JSON depth of 128"
VALUES = "contains more than 100000 JSON values"
EVENT_DEPTH = "exceeds the maximum event depth of 256"
MEMBERS = "exceeds the JSON members limit"
BYTES = "exceeds the JSON byte limit"
EMPTY_TEXT = "must be non-empty JSON text"
INVALID_TEXT = "must be valid JSON text"


def non_json(type_name: str) -> str:
    """
    Word the complaint about a value of a built-in type that JSON has no form for.

    Args:
        type_name: One of this package's own words, never a name read from a
            caller's class.
    """
    return f"contains a non-JSON {type_name}"


class JsonComplaint(ValueError):  # noqa: N818 - "complaint" is the word for it everywhere else too
    """
    A value that is refused as JSON, with the rule it breaks and where.

    ``str(complaint)`` is one of the fixed texts of the specification. Neither
    it nor ``path`` repeats a value, so both may be logged; ``path`` names
    object keys only where they look like field names.

    Spec: run-store 9.3.
    """

    def __init__(self, complaint: str, path: str = "$") -> None:
        """
        Keep the broken rule and the place it was broken.

        Args:
            complaint: A text of this module.
            path: Where the refused value sits, such as ``$.items[3].name``.
                ``{2}`` stands for the third member of an object, where its
                key could be data. ``$`` is the whole value.
        """
        super().__init__(complaint)
        self.complaint = complaint
        self.path = path
