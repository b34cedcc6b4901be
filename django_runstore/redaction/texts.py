"""
Find credentials in running text.

Every pattern takes time in proportion to the text, whatever the text is: what repeats is
possessive or ends at the character that must follow, and a match begins only where a word
begins, so that no stretch of text is walked again from each of its characters.
"""

import re
from typing import Final

from django_runstore.redaction.names import counts_tokens, is_credential_name, spans_the_line

REDACTED: Final = "[REDACTED]"

_START: Final = r"(?<![A-Za-z0-9_-])"

# Without an end the rest of the text is taken for the block: keys get cut off in logs.
_PEM: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{1,64}-----(?:.*?-----END [A-Z0-9 ]{1,64}-----|.*)", re.DOTALL
)
_JWT: Final = re.compile(_START + r"eyJ[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]*+){1,4}")
_BEARER: Final = re.compile(_START + r"(bearer[ \t]++)[A-Za-z0-9._~+/=-]{8,}+", re.IGNORECASE)
_URL_PASSWORD: Final = re.compile(r"(://[^\s/?#\"'<>:@]*+:)[^\s/?#\"'<>]+@")
_PROVIDER_KEY: Final = re.compile(
    _START + r"(?:"
    # OpenAI, Anthropic, Stripe, GitHub, GitLab, Slack, Hugging Face, npm, PyPI, Shopify,
    # DigitalOcean
    r"(?:sk-|[sr]k_(?:live|test)_|whsec_|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_"
    r"|pypi-|shp(?:at|ca|pa|ss)_|do[opr]_v1_)[A-Za-z0-9_-]{16,}+"
    # AWS
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    # Google
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{16,}+"
    # SendGrid
    r"|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"
    r")"
)

# A name, perhaps the quote that ends it, and what assigns; not the colon of a URL.
_ASSIGNMENT: Final = re.compile(
    r"(?<![A-Za-z0-9_.-])([A-Za-z_][A-Za-z0-9_.-]*+)\\?[\"']?"
    r"[ \t]{0,8}(?:=>|:=|=|:(?!//))[ \t]{0,8}"
)
_QUOTED: Final = re.compile(
    r"(?P<quote>\\\")[^\"]*+\"?"
    r"|(?P<double>\")(?:[^\"\\]|\\.)*+\"?"
    r"|(?P<single>')(?:[^'\\]|\\.)*+'?",
    re.DOTALL,
)
_WORD: Final = re.compile(
    r"(?:(?:basic|bearer|digest|negotiate|token)[ \t]{1,8})?"
    r"(?:\[REDACTED\]|[^\s,;&\"'<>()\[\]{}]++)",
    re.IGNORECASE,
)
_REST_OF_LINE: Final = re.compile(r"[^\r\n\"']++")
_NUMBER: Final = re.compile(r"[0-9]++(?:\.[0-9]++)?")


def redact_text(text: str) -> str:
    """
    Replace the credentials in a text, whatever else it says.

    Found are PEM blocks, JWTs, bearer tokens, passwords in URLs, keys that look like those of
    well-known providers, and what is assigned to a name of a credential (``password=...``,
    ``"api_key": "..."``).
    """
    text = _PEM.sub(REDACTED, text)
    text = _JWT.sub(REDACTED, text)
    text = _BEARER.sub(rf"\1{REDACTED}", text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    text = _PROVIDER_KEY.sub(REDACTED, text)
    return _redact_assignments(text)


def _redact_assignments(text: str) -> str:
    parts: list[str] = []
    copied = position = 0
    while found := _ASSIGNMENT.search(text, position):
        position = found.end()
        name = found[1]
        if not is_credential_name(name):
            # What is assigned can hold an assignment itself: url=https://host/?token=...
            continue
        span = _value_at(text, position, name)
        if span is None:
            continue
        parts += [text[copied:position], span[0]]
        copied = position = span[1]
    return "".join([*parts, text[copied:]]) if parts else text


def _value_at(text: str, position: int, name: str) -> tuple[str, int] | None:
    """Give what replaces the value that begins here, and where the value ends."""
    quoted = _QUOTED.match(text, position)
    if quoted is not None:
        quote = quoted[quoted.lastgroup or 0]
        return f"{quote}{REDACTED}{quote}", quoted.end()
    bare = (_REST_OF_LINE if spans_the_line(name) else _WORD).match(text, position)
    if bare is None or (counts_tokens(name) and _NUMBER.fullmatch(bare[0])):
        return None
    return REDACTED, bare.end()
