"""Spec 8.1: what strings are scanned for, and that no string takes long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.redaction import redact_text

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

FOUND = {
    "a PEM block": (f"before {PEM} after", "before [REDACTED] after"),
    "two PEM blocks": (f"{PEM}, {PEM}", "[REDACTED], [REDACTED]"),
    "a PEM block with escaped line ends": (PEM.replace("\n", "\\n"), "[REDACTED]"),
    "a PEM block that was cut off": (f"before {PEM[:50]}", "before [REDACTED]"),
    "a JWT": (f"got {JWT}, sent", "got [REDACTED], sent"),
    "an encrypted JWT": ("eyJhbGciOiJ.aaa.bbb.ccc.ddd", "[REDACTED]"),
    "a bearer token": ("curl -H 'Bearer abc.def-12345'", "curl -H 'Bearer [REDACTED]'"),
    "a bearer token in capitals": ("BEARER abcdefgh", "BEARER [REDACTED]"),
    "the password of a URL": (
        "postgres://ada:s3cr3t@db:5432/x",
        "postgres://ada:[REDACTED]@db:5432/x",
    ),
    "a password without a user": ("redis://:s3cr3t@cache/0", "redis://:[REDACTED]@cache/0"),
    "a password with an at sign": ("amqp://ada:p@ss@mq//", "amqp://ada:[REDACTED]@mq//"),
    "an OpenAI key": ("sk-proj-abcdefghij0123456789", "[REDACTED]"),
    "a Stripe key": ("sk_live_abcdefghij0123456789", "[REDACTED]"),
    "a GitHub token": ("ghp_abcdefghij0123456789abcdefghij012345", "[REDACTED]"),
    "a fine-grained GitHub token": ("github_pat_11ABCDEFG0abcdefghij", "[REDACTED]"),
    "a GitLab token": ("glpat-abcdefghij0123456789", "[REDACTED]"),
    "a Slack token": ("xoxb-123456789012-abcdefghij", "[REDACTED]"),
    "an AWS key id": ("id AKIAIOSFODNN7EXAMPLE.", "id [REDACTED]."),
    "a Google key": ("AIza" + "a" * 35, "[REDACTED]"),
    "a SendGrid key": ("SG.abcdefghij0123456789.abcdefghij0123456789", "[REDACTED]"),
    "an assignment": ("password=hunter2", "password=[REDACTED]"),
    "an assignment with a colon": ("api_key: abc, user: ada", "api_key: [REDACTED], user: ada"),
    "an assignment in quotes": ('SECRET="a b \\" c"; x=1', 'SECRET="[REDACTED]"; x=1'),
    "an assignment in single quotes": ("secret = 'a b'", "secret = '[REDACTED]'"),
    "an assignment whose quote never ends": ('token="abc', 'token="[REDACTED]"'),
    "a member of JSON": ('{"apiKey": "abc", "n": 1}', '{"apiKey": "[REDACTED]", "n": 1}'),
    "a member of JSON in JSON": (
        r"{\"password\": \"abc\", \"n\": 1}",
        r"{\"password\": \"[REDACTED]\", \"n\": 1}",
    ),
    "a query parameter": ("https://h/?token=abc&n=1", "https://h/?token=[REDACTED]&n=1"),
    "an assignment in an assignment": (
        "url=https://h/?token=abc",
        "url=https://h/?token=[REDACTED]",
    ),
    "a header with a scheme": ("Authorization: Basic YTpi", "Authorization: [REDACTED]"),
    "a header of several parts": ("Cookie: a=b; c=d\r\nHost: h", "Cookie: [REDACTED]\r\nHost: h"),
    "a hash rocket": ("secret => abc", "secret => [REDACTED]"),
}

LEFT = [
    *("", "hello", "the bearer of bad news", "monkey=1", "https://host:8080/a@b", "a@b.example"),
    *("author: ada", "max_tokens: 128", "prompt_tokens=12.5", "token", "password", "eyJ", "sk-ada"),
    *("auth://host/path", "key", "1 = 2", "Ünïcödé 😀", "-----BEGIN", "://:@"),
]


@pytest.mark.parametrize(("text", "expected"), FOUND.values(), ids=FOUND)
def test_a_credential_in_a_text_is_replaced_and_the_rest_is_kept(text, expected):
    assert redact_text(text) == expected


@pytest.mark.parametrize(("text", "expected"), FOUND.values(), ids=FOUND)
def test_what_was_redacted_once_is_not_redacted_further(text, expected):
    assert redact_text(expected) == expected


@pytest.mark.parametrize("text", LEFT)
def test_what_is_no_credential_is_left_as_it_is(text):
    assert redact_text(text) == text


@given(st.text(), st.sampled_from(sorted(FOUND)), st.text())
def test_a_credential_is_found_whatever_stands_around_it(before, kind, after):
    secrets = {"s3cr3t", "hunter2", "dBjftJeZ4CVP", "abcdefghij0123456789"}
    secret = next((one for one in secrets if one in FOUND[kind][0]), None)
    if secret is not None and secret not in before + after:
        assert secret not in redact_text(f"{before}\n{FOUND[kind][0]}\n{after}")


# Each repeated to a megabyte makes a pattern that goes back, or begins again at every
# character, take hours, and to a fifth of it many minutes: the time limit of a test is the
# only clock that is needed.
REPEATED = [
    *("a", "a_", "Aa", "A", "-", "=", " ", "eyJ", "eyJa.", "-----BEGIN A-----", "-----END A"),
    *(
        "-----BEGIN ",
        "://",
        "://a:",
        "://a:b",
        "@",
        "bearer ",
        "bearer\t",
        "sk-",
        "sk_live_",
        "SG.",
    ),
    *("a=", "token=", "token= ", 'token="', "token='", r"token=\"", "token=basic ", "a:", "\\"),
    *('"', "'", '\\"', "'\"", "AKIA", "ya29.", "token=\\", "cookie:", "\r", "token: [REDACTED]"),
]
BEFORE = ['token="', "token='", r"token=\"", "-----BEGIN A-----", "://a:", "eyJ", "bearer "]


@pytest.mark.parametrize("unit", REPEATED)
def test_no_text_takes_more_time_than_its_length_asks_for(unit):
    redact_text(unit * (1_000_000 // len(unit)))
    for before in BEFORE:
        redact_text(before + unit * (200_000 // len(unit)))
