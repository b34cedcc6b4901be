"""People with various rights, and pages as they see them."""

import pytest
from django.contrib.auth.models import Permission


@pytest.fixture
def member(db, django_user_model, client):
    """Log in a staff member with the named permissions."""

    def log_in(*codenames):
        user = django_user_model.objects.create_user("member", is_staff=True)
        found = Permission.objects.filter(
            content_type__app_label="runstore", codename__in=codenames
        )
        assert len(found) == len(codenames)
        user.user_permissions.set(found)
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def admin_client(db, django_user_model, client):
    """A client that may do everything; without a password, whose hash would take half a second."""
    client.force_login(django_user_model.objects.create_superuser("root"))
    return client


@pytest.fixture
def viewer(member):
    """A client that may see runs and entries, and no more."""
    return member("view_run", "view_journalentry")


@pytest.fixture
def operator(member):
    """A client that may also ask runs to stop."""
    return member("view_run", "view_journalentry", "cancel_run")


@pytest.fixture
def lineage_operator(member):
    """A client that may ask whole lineages to stop."""
    return member("view_run", "cancel_lineage")


@pytest.fixture
def page():
    """The text of a page that has to be there."""

    def fetch(client, url, **query):
        response = client.get(url, query)
        assert response.status_code == 200, response.status_code
        return response.content.decode()

    return fetch
