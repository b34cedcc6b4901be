"""The login that `dev.py serve` prints works, and goes away with the server."""

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("THROWAWAY_PASSWORD", "first")


@pytest.mark.django_db
def test_the_user_can_log_in_and_may_do_everything():
    call_command("throwaway_admin", "visitor")

    user = authenticate(username="visitor", password="first")
    assert user is not None
    assert user.is_superuser


@pytest.mark.django_db
def test_an_earlier_password_no_longer_works(monkeypatch):
    call_command("throwaway_admin", "visitor")
    monkeypatch.setenv("THROWAWAY_PASSWORD", "second")

    call_command("throwaway_admin", "visitor")

    assert authenticate(username="visitor", password="first") is None


@pytest.mark.django_db
def test_the_user_is_removed():
    call_command("throwaway_admin", "visitor")

    call_command("throwaway_admin", "visitor", "--remove")

    assert not get_user_model().objects.exists()


@pytest.mark.django_db
def test_no_user_is_made_without_a_password(monkeypatch):
    monkeypatch.delenv("THROWAWAY_PASSWORD")

    with pytest.raises(CommandError, match="THROWAWAY_PASSWORD is not set"):
        call_command("throwaway_admin", "visitor")
