"""Tell by its name what holds a credential."""

import re
from typing import Final

# What a name ends with, its words joined: "accessToken", "access_token" and "ACCESS-TOKEN"
# all end with "token". Spec: run-store 8.1.
_ENDINGS: Final = (
    "authorization",
    "cookie",
    "apikey",
    "token",
    "password",
    "passphrase",
    "secret",
    "secretaccesskey",
    "credential",
    "dsn",
    "connectionstring",
    "privatekey",
    "sshkey",
    "session",
    "signature",
    "auth",
)
# Only as a word of its own: "signingKey", but not "monkey".
_WORD: Final = "key"

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# No name is longer; what is may be data, and its end is what counts.
_LONGEST_NAME: Final = 256


def is_credential_name(name: str) -> bool:
    """
    Tell whether a field of this name holds a credential.

    The plural and a number at the end make no difference (``cookies``, ``password2``).
    """
    words = _words(name)
    return bool(words) and (words[-1] == _WORD or _singular(words).endswith(_ENDINGS))


def counts_tokens(name: str) -> bool:
    """Tell whether a number under this name can be a count of tokens, which is no secret."""
    return _singular(_words(name)).endswith("token")


def spans_the_line(name: str) -> bool:
    """Tell whether the value in a text goes to the end of the line, as in a header."""
    return _singular(_words(name)).endswith(("authorization", "cookie"))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name[-_LONGEST_NAME:])]


def _singular(words: list[str]) -> str:
    return "".join(words).removesuffix("s")
