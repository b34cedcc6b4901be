"""Models that people read and services write."""

from typing import Any, Generic, NoReturn, TypeVar

from django.db import models

ModelT = TypeVar("ModelT", bound=models.Model, covariant=True)  # noqa: PLC0105 - as in django-stubs


class ReadOnlyModelError(TypeError):
    """
    A row of this package was about to be written past its services.

    A write that does not compare owner and fence would undo what the package promises.
    """

    def __init__(self, model: str, operation: str, instead: str) -> None:
        super().__init__(f"{model}.{operation} is refused: {model} rows are written by {instead}")


class ReadOnlyQuerySet(models.QuerySet[ModelT], Generic[ModelT]):
    """A queryset for reading; every write method refuses and names the service to call."""

    def _refuse(self, operation: str) -> NoReturn:
        instead = getattr(self.model, "written_by", "the services of django_runstore")
        raise ReadOnlyModelError(self.model.__name__, operation, instead)

    def create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("create")

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("bulk_create")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("bulk_update")

    def get_or_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("get_or_create")

    def update_or_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("update_or_create")

    def update(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("update")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("delete")

    # Django marks these on its own methods, and templates and related managers look at them.
    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]
    update.alters_data = True  # type: ignore[attr-defined]
    create.alters_data = True  # type: ignore[attr-defined]

    def _raw_delete(self, using: str | None) -> NoReturn:
        self._refuse("delete")


class ReadOnlyModel(models.Model):
    """Refuses ``save`` and ``delete`` on instances, and the write methods of ``objects``."""

    written_by = "the services of django_runstore"

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise ReadOnlyModelError(type(self).__name__, "save", self.written_by)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise ReadOnlyModelError(type(self).__name__, "delete", self.written_by)

    save.alters_data = True  # type: ignore[attr-defined]
    delete.alters_data = True  # type: ignore[attr-defined]


class UnguardedQuerySet(models.QuerySet[ModelT], Generic[ModelT]):
    """
    The door the services write through.

    Everything else in this package is kept away from it by a test: a write made here
    compares no fence unless the caller's WHERE does.
    """

    def create(self, **values: Any) -> ModelT:
        """Insert one row; the model's own ``save`` refuses."""
        instance = self.model(**values)
        self.bulk_create([instance])
        return instance


class ReadOnlyManager(models.Manager.from_queryset(ReadOnlyQuerySet)):  # type: ignore[misc]  # made at run time
    """Manager of rows that services write."""


class UnguardedManager(models.Manager.from_queryset(UnguardedQuerySet)):  # type: ignore[misc]  # made at run time
    """Manager for the services themselves."""
