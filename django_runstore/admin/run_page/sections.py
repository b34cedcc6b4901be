"""The parts of a run's page: each reads what it shows, within bounds, and has a template."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from django_runstore.models import Run


@dataclass(frozen=True, slots=True)
class PageOf:
    """
    The run whose page it is, and the circumstances.

    Attributes:
        run: Its wide columns are deferred.
        using: The database that it was read from.
        request: Whatever its address says behind the question mark, anybody may have written.
        now_ms: By the store's clock.
    """

    run: Run
    using: str
    request: HttpRequest
    now_ms: int
    site: AdminSite


class Section(ABC):
    """A part of the page, with a heading of its own."""

    name: ClassVar[str]
    """A slug; where the address leads within the page."""

    title: ClassVar[Any]
    template: ClassVar[str]

    @abstractmethod
    def content(self, page: PageOf) -> Mapping[str, Any]:
        """Read what the template shows; it finds it under ``content``."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A section with its content, for the template of the page."""

    name: str
    title: Any
    template: str
    content: Mapping[str, Any]


def shown(section: Section, page: PageOf) -> Shown:
    """Read a section for a page."""
    return Shown(section.name, section.title, section.template, section.content(page))
