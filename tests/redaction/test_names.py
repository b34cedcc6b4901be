"""Spec 8.1: fields whose name ends with a credential word."""

import pytest

from django_runstore.redaction import is_credential_name

WORDS = (
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


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    "name", ["{}", "my_{}", "my-{}", "my.{}", "{}s", "{}2", "x_{}_1"], ids=lambda form: form
)
def test_a_name_that_ends_with_a_credential_word_is_one(word, name):
    assert is_credential_name(name.format(word))
    assert is_credential_name(name.format(word).upper())
    assert is_credential_name(name.format(word.title()))


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "API-KEY", "apiKey", "accessToken", "AWSSecretAccessKey", "connectionString"),
        *("private_key", "ssh key", "X-Auth-Token", "Proxy-Authorization", "Set-Cookie", "oauth"),
    ],
)
def test_words_are_found_however_they_are_joined(name):
    assert is_credential_name(name)


@pytest.mark.parametrize("name", ["key", "KEY", "signing_key", "signingKey", "SigningKey", "key_2"])
def test_key_counts_as_a_word_of_its_own(name):
    assert is_credential_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("monkey", "keyboard", "key_id", "author", "token_count", "session_id", "secretary"),
        *("authorized", "", "_", "1", "__proto__", "übung", "passwort", "name", "run_id"),
    ],
)
def test_other_names_are_not(name):
    assert not is_credential_name(name)


def test_only_the_end_of_a_huge_name_is_looked_at():
    assert is_credential_name("x" * 1_000_000 + "_password")
