"""The supervisors that are at work, for people to look at."""

import json
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_runstore.models.constraints import integer_range, not_empty
from django_runstore.models.fields import DurableTextField
from django_runstore.owners import OwnerId
from django_runstore.read_only import ReadOnlyManager, ReadOnlyModel, UnguardedManager


class SupervisorProcess(ReadOnlyModel):
    """
    One supervisor as it last described itself.

    For display only, never evidence: a row may be missing while its supervisor works, and
    stay when it was killed. Whether an owner lives is judged by heartbeats and liveness checks.
    """

    written_by = "the supervisor it describes"

    host_id = DurableTextField(_("host"))
    pid = models.BigIntegerField(_("pid"))
    nonce = DurableTextField(_("nonce"))
    started_at_ms = models.BigIntegerField(_("started at (ms)"))
    pulsed_at_ms = models.BigIntegerField(_("last pulse at (ms)"))
    version = DurableTextField(_("version"))
    queues_json = models.TextField(_("queues"), help_text=_("Null for all queues."))
    capacity = models.IntegerField(_("capacity"), help_text=_("How many runs at once."))
    is_draining = models.BooleanField(_("draining"), default=False, db_default=False)
    hears_notices = models.BooleanField(
        _("hears notices"),
        null=True,
        help_text=_("False when it only polls. Null where notices are not used."),
    )

    objects = ReadOnlyManager()
    unguarded = UnguardedManager()

    class Meta:
        db_table = "runstore_supervisor"
        base_manager_name = "objects"
        verbose_name = _("supervisor")
        verbose_name_plural = _("supervisors")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["host_id", "pid", "nonce"], name="runstore_supervisor_owner"
            ),
            *(not_empty("runstore_supervisor", column) for column in ("host_id", "nonce")),
            *(
                integer_range("runstore_supervisor", column)
                for column in ("pid", "started_at_ms", "pulsed_at_ms", "capacity")
            ),
        ]

    def __str__(self) -> str:
        """Name the process."""
        return self.owner.describe()

    @property
    def owner(self) -> OwnerId:
        """The name under which it owns runs."""
        return OwnerId(self.host_id, self.pid, self.nonce)

    @property
    def queues(self) -> list[str] | None:
        """The queues that it serves; None for all of them."""
        found = json.loads(self.queues_json)
        return found if isinstance(found, list) else None
