"""What the revisions of runs rest on, beside the runs. Spec: run-store 2.3 and 12."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_runstore.models.fields import DurableTextField
from django_runstore.read_only import ReadOnlyManager, ReadOnlyModel


class StoreIdentity(ReadOnlyModel):
    """
    Which database this is: one row with 32 random hexadecimal digits.

    Copied with every backup, so a restored database claims to be the one it was taken from
    until ``manage.py runstore_rotate_identity`` says otherwise.

    Unmanaged, as the tombstones are: Django's ``flush`` empties the tables that it manages,
    and without this row every change of a run is refused. The migration makes the table.
    """

    written_by = "manage.py runstore_rotate_identity"

    id = models.PositiveSmallIntegerField(primary_key=True)
    identity = DurableTextField(_("identity"))

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "runstore_store_identity"
        base_manager_name = "objects"
        verbose_name = _("store identity")
        verbose_name_plural = _("store identities")

    def __str__(self) -> str:
        """Give the identity."""
        return str(self.identity)


class RunTombstone(ReadOnlyModel):
    """
    The last change of a run that is no more: its deletion. Kept for ever.

    Written by the triggers of the run table, whoever deletes.
    """

    written_by = "the triggers of runstore_run"

    run_id = DurableTextField(_("run"), primary_key=True)
    revision = models.BigIntegerField(_("revision"))
    revision_xid = models.BigIntegerField(_("writing transaction"), default=0)

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "runstore_run_tombstone"
        base_manager_name = "objects"
        verbose_name = _("run tombstone")
        verbose_name_plural = _("run tombstones")

    def __str__(self) -> str:
        """Name the run that was deleted."""
        return str(self.run_id)
