"""Create the run, attempt and journal tables."""

import django.db.models.deletion
from django.db import migrations, models

import django_runstore.models.constraints
import django_runstore.models.fields
from django_runstore.db.operations import InstallTriggers
from django_runstore.db.revision_tables import create_revision_tables, drop_revision_tables
from django_runstore.db.storage import tune_run_table


class Migration(migrations.Migration):
    """The first schema."""

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "run_id",
                    django_runstore.models.fields.DurableTextField(
                        primary_key=True, serialize=False, verbose_name="run"
                    ),
                ),
                (
                    "status",
                    django_runstore.models.fields.DurableTextField(
                        choices=[
                            ("pending", "pending"),
                            ("running", "running"),
                            ("suspended", "suspended"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        verbose_name="status",
                    ),
                ),
                ("created_at_ms", models.BigIntegerField(verbose_name="created at (ms)")),
                (
                    "started_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="started at (ms)"),
                ),
                (
                    "finished_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="finished at (ms)"),
                ),
                (
                    "created_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django_runstore.models.fields.EpochMillisAsDatetime(
                            "created_at_ms"
                        ),
                        output_field=models.DateTimeField(null=True),
                        verbose_name="created",
                    ),
                ),
                (
                    "started_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django_runstore.models.fields.EpochMillisAsDatetime(
                            "started_at_ms"
                        ),
                        output_field=models.DateTimeField(null=True),
                        verbose_name="started",
                    ),
                ),
                (
                    "finished_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django_runstore.models.fields.EpochMillisAsDatetime(
                            "finished_at_ms"
                        ),
                        output_field=models.DateTimeField(null=True),
                        verbose_name="finished",
                    ),
                ),
                (
                    "owner_host_id",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, null=True, verbose_name="owner host"
                    ),
                ),
                (
                    "owner_pid",
                    models.BigIntegerField(blank=True, null=True, verbose_name="owner pid"),
                ),
                (
                    "owner_nonce",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, null=True, verbose_name="owner nonce"
                    ),
                ),
                (
                    "heartbeat_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="heartbeat at (ms)"),
                ),
                (
                    "owner_fence",
                    models.BigIntegerField(
                        blank=True,
                        help_text="The grant of the current owner.",
                        null=True,
                        verbose_name="owner fence",
                    ),
                ),
                (
                    "claim_host_id",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, null=True, verbose_name="claimant host"
                    ),
                ),
                (
                    "claim_pid",
                    models.BigIntegerField(blank=True, null=True, verbose_name="claimant pid"),
                ),
                (
                    "claim_nonce",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, null=True, verbose_name="claimant nonce"
                    ),
                ),
                (
                    "claimed_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="claimed at (ms)"),
                ),
                (
                    "fence",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="The last grant handed out; never reused.",
                        verbose_name="fence",
                    ),
                ),
                (
                    "lineage_id",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, null=True, verbose_name="lineage"
                    ),
                ),
                (
                    "round_ordinal",
                    models.BigIntegerField(blank=True, null=True, verbose_name="round"),
                ),
                (
                    "cancel_requested_at_ms",
                    models.BigIntegerField(
                        blank=True, null=True, verbose_name="cancel requested at (ms)"
                    ),
                ),
                (
                    "cancel_acknowledgement_json",
                    models.TextField(blank=True, null=True, verbose_name="cancel acknowledgement"),
                ),
                (
                    "waiting_reason",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, null=True, verbose_name="waiting for"
                    ),
                ),
                (
                    "waiting_wake_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="wakes at (ms)"),
                ),
                (
                    "waiting_token",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, null=True, verbose_name="waiting token"
                    ),
                ),
                (
                    "waiting_request",
                    models.TextField(blank=True, null=True, verbose_name="waiting request"),
                ),
                (
                    "handler",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="", default="", verbose_name="handler"
                    ),
                ),
                (
                    "queue",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="default", default="default", verbose_name="queue"
                    ),
                ),
                (
                    "priority",
                    models.IntegerField(
                        db_default=0,
                        default=0,
                        help_text="Higher runs first; each step is worth a minute of waiting.",
                        verbose_name="priority",
                    ),
                ),
                (
                    "concurrency_key",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="", default="", verbose_name="concurrency key"
                    ),
                ),
                (
                    "concurrency_limit",
                    models.IntegerField(
                        db_default=1,
                        default=1,
                        help_text="How many runs with the same concurrency key may be live at once.",
                        verbose_name="concurrency limit",
                    ),
                ),
                (
                    "available_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="available at (ms)"),
                ),
                (
                    "claim_order_ms",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.db.models.expressions.CombinedExpression(
                            models.F("available_at_ms"),
                            "-",
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.functions.comparison.Cast(
                                    models.F("priority"), models.BigIntegerField()
                                ),
                                "*",
                                models.Value(60000),
                            ),
                        ),
                        help_text="Runs are claimed in this order: those that are due first, with priority.",
                        output_field=models.BigIntegerField(null=True),
                        verbose_name="claim order (ms)",
                    ),
                ),
                (
                    "deadline_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="deadline at (ms)"),
                ),
                (
                    "code_version",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="", default="", verbose_name="code version"
                    ),
                ),
                (
                    "state_version",
                    models.BigIntegerField(db_default=0, default=0, verbose_name="state version"),
                ),
                (
                    "failure_count",
                    models.BigIntegerField(db_default=0, default=0, verbose_name="failures"),
                ),
                (
                    "recovery_count",
                    models.BigIntegerField(db_default=0, default=0, verbose_name="recoveries"),
                ),
                (
                    "progressed_at_ms",
                    models.BigIntegerField(
                        blank=True, null=True, verbose_name="progressed at (ms)"
                    ),
                ),
                (
                    "journal_seq",
                    models.BigIntegerField(
                        db_default=0, default=0, verbose_name="next journal sequence"
                    ),
                ),
                (
                    "ownership_seq",
                    models.BigIntegerField(
                        db_default=0, default=0, verbose_name="next ownership sequence"
                    ),
                ),
                (
                    "revision",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="The number of the latest change; beats and progress are no changes.",
                        verbose_name="revision",
                    ),
                ),
                (
                    "revision_xid",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="PostgreSQL: which transaction made the latest change.",
                        verbose_name="writing transaction",
                    ),
                ),
                ("progress_json", models.TextField(blank=True, null=True, verbose_name="progress")),
                ("result_json", models.TextField(blank=True, null=True, verbose_name="result")),
                ("error_json", models.TextField(blank=True, null=True, verbose_name="error")),
                ("state_json", models.TextField(verbose_name="state")),
                (
                    "parent_run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="runstore.run",
                        verbose_name="parent",
                    ),
                ),
            ],
            options={
                "verbose_name": "run",
                "verbose_name_plural": "runs",
                "db_table": "runstore_run",
                "permissions": [
                    ("cancel_run", "Can cancel a run"),
                    ("cancel_lineage", "Can cancel a lineage"),
                    ("wake_run", "Can wake a waiting run"),
                    ("release_claim", "Can release a stale claim"),
                ],
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(
                        condition=models.Q(("status__in", ("pending", "suspended"))),
                        fields=["queue", "claim_order_ms", "available_at_ms", "run_id"],
                        name="runstore_run_claimable",
                    ),
                    models.Index(
                        condition=models.Q(("status__in", ("pending", "suspended"))),
                        fields=["claim_order_ms", "available_at_ms", "run_id"],
                        name="runstore_run_claimable_any",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("status__in", ("pending", "suspended")), ("available_at_ms__gte", 0)
                        ),
                        fields=["queue", "available_at_ms"],
                        name="runstore_run_due",
                    ),
                    models.Index(
                        condition=models.Q(("status", "running")),
                        fields=["run_id"],
                        name="runstore_run_running",
                    ),
                    models.Index(
                        condition=models.Q(("claim_host_id__isnull", False)),
                        fields=["run_id"],
                        name="runstore_run_claimed",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("status", "running"), models.Q(("concurrency_key", ""), _negated=True)
                        ),
                        fields=["concurrency_key", "concurrency_limit"],
                        name="runstore_run_concurrency",
                    ),
                    models.Index(
                        condition=models.Q(("parent_run__isnull", False)),
                        fields=["parent_run"],
                        name="runstore_run_children",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("cancel_requested_at_ms__isnull", False),
                            ("status__in", ("pending", "running", "suspended")),
                        ),
                        fields=["cancel_requested_at_ms"],
                        name="runstore_run_cancelling",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("status__in", ("pending", "running", "suspended")),
                            ("waiting_reason__isnull", False),
                        ),
                        fields=["waiting_reason", "waiting_wake_at_ms", "run_id"],
                        name="runstore_run_waiting_idx",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("status__in", ("pending", "running", "suspended")),
                            ("waiting_reason__isnull", False),
                        ),
                        fields=["waiting_wake_at_ms", "run_id"],
                        name="runstore_run_waiting_any",
                    ),
                    models.Index(fields=["created_at_ms", "run_id"], name="runstore_run_newest"),
                    models.Index(
                        condition=models.Q(
                            (
                                "status__in",
                                ["pending", "suspended", "completed", "failed", "cancelled"],
                            )
                        ),
                        fields=["status", "created_at_ms"],
                        name="runstore_run_by_status",
                    ),
                    models.Index(
                        condition=models.Q(("status__in", ("completed", "failed", "cancelled"))),
                        fields=["handler", "status", "created_at_ms"],
                        name="runstore_run_by_handler",
                    ),
                    models.Index(
                        condition=models.Q(("status__in", ("completed", "failed", "cancelled"))),
                        fields=["queue", "status", "created_at_ms"],
                        name="runstore_run_by_queue",
                    ),
                    models.Index(
                        condition=models.Q(("finished_at_ms__isnull", False)),
                        fields=["finished_at_ms", "status"],
                        name="runstore_run_finished",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("recovery_count__gt", 0),
                            ("status__in", ("pending", "running", "suspended")),
                        ),
                        fields=["recovery_count"],
                        name="runstore_run_recovering",
                    ),
                    models.Index(fields=["revision_xid", "revision"], name="runstore_run_changes"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "pending",
                                    "running",
                                    "suspended",
                                    "completed",
                                    "failed",
                                    "cancelled",
                                ],
                            )
                        ),
                        name="runstore_run_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("status", "running"),
                                ("owner_host_id__isnull", False),
                                ("owner_pid__isnull", False),
                                ("owner_nonce__isnull", False),
                                ("heartbeat_at_ms__isnull", False),
                                ("owner_pid__gte", 0),
                                models.Q(("owner_host_id", ""), _negated=True),
                                models.Q(("owner_nonce", ""), _negated=True),
                            ),
                            models.Q(
                                models.Q(("status", "running"), _negated=True),
                                ("owner_host_id__isnull", True),
                                ("owner_pid__isnull", True),
                                ("owner_nonce__isnull", True),
                                ("heartbeat_at_ms__isnull", True),
                                ("owner_fence__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("claim_host_id__isnull", True),
                                ("claim_pid__isnull", True),
                                ("claim_nonce__isnull", True),
                                ("claimed_at_ms__isnull", True),
                            ),
                            models.Q(
                                ("claim_host_id__isnull", False),
                                ("claim_pid__isnull", False),
                                ("claim_nonce__isnull", False),
                                ("claimed_at_ms__isnull", False),
                                ("claim_pid__gte", 0),
                                models.Q(("claim_host_id", ""), _negated=True),
                                models.Q(("claim_nonce", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_claim",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("waiting_reason__isnull", False),
                            models.Q(
                                ("waiting_wake_at_ms__isnull", True),
                                ("waiting_token__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_waiting",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("owner_fence__isnull", True),
                            models.Q(
                                ("owner_fence__gte", 0), ("owner_fence__lte", models.F("fence"))
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_fences",
                    ),
                    models.CheckConstraint(
                        condition=django_runstore.models.constraints.HasBytes("state_json"),
                        name="runstore_run_state_json_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("run_id", ""), _negated=True),
                        name="runstore_run_run_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("lineage_id", ""), _negated=True),
                        name="runstore_run_lineage_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("waiting_reason", ""), _negated=True),
                        name="runstore_run_waiting_reason_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("waiting_token", ""), _negated=True),
                        name="runstore_run_waiting_token_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("queue", ""), _negated=True),
                        name="runstore_run_queue_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("created_at_ms__gte", 0), ("created_at_ms__lte", 9007199254740991)
                        ),
                        name="runstore_run_created_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("fence__gte", 0), ("fence__lte", 9007199254740991)),
                        name="runstore_run_fence_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("failure_count__gte", 0), ("failure_count__lte", 9007199254740991)
                        ),
                        name="runstore_run_failure_count_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("recovery_count__gte", 0), ("recovery_count__lte", 9007199254740991)
                        ),
                        name="runstore_run_recovery_count_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state_version__gte", 0), ("state_version__lte", 9007199254740991)
                        ),
                        name="runstore_run_state_version_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("journal_seq__gte", 0), ("journal_seq__lte", 9007199254740991)
                        ),
                        name="runstore_run_journal_seq_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ownership_seq__gte", 0), ("ownership_seq__lte", 9007199254740991)
                        ),
                        name="runstore_run_ownership_seq_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("started_at_ms__isnull", True),
                            models.Q(
                                ("started_at_ms__gte", 0), ("started_at_ms__lte", 9007199254740991)
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_started_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("finished_at_ms__isnull", True),
                            models.Q(
                                ("finished_at_ms__gte", 0),
                                ("finished_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_finished_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("heartbeat_at_ms__isnull", True),
                            models.Q(
                                ("heartbeat_at_ms__gte", 0),
                                ("heartbeat_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_heartbeat_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("claimed_at_ms__isnull", True),
                            models.Q(
                                ("claimed_at_ms__gte", 0), ("claimed_at_ms__lte", 9007199254740991)
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_claimed_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("round_ordinal__isnull", True),
                            models.Q(
                                ("round_ordinal__gte", 0), ("round_ordinal__lte", 9007199254740991)
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_round_ordinal_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cancel_requested_at_ms__isnull", True),
                            models.Q(
                                ("cancel_requested_at_ms__gte", 0),
                                ("cancel_requested_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_cancel_requested_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("waiting_wake_at_ms__isnull", True),
                            models.Q(
                                ("waiting_wake_at_ms__gte", 0),
                                ("waiting_wake_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_waiting_wake_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("available_at_ms__isnull", True),
                            models.Q(
                                ("available_at_ms__gte", 0),
                                ("available_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_available_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("deadline_at_ms__isnull", True),
                            models.Q(
                                ("deadline_at_ms__gte", 0),
                                ("deadline_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_deadline_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("progressed_at_ms__isnull", True),
                            models.Q(
                                ("progressed_at_ms__gte", 0),
                                ("progressed_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_run_progressed_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("concurrency_limit__gte", 1)),
                        name="runstore_run_concurrency_limit",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("lineage_id__isnull", False)),
                        fields=("lineage_id", "round_ordinal"),
                        name="runstore_run_lineage_round",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "step_key_digest",
                    django_runstore.models.fields.DurableTextField(verbose_name="step key"),
                ),
                (
                    "step_key_hash",
                    models.BinaryField(max_length=32, verbose_name="step key digest"),
                ),
                ("attempt", models.BigIntegerField(verbose_name="attempt")),
                (
                    "step_name",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="", default="", verbose_name="step"
                    ),
                ),
                ("state", django_runstore.models.fields.DurableTextField(verbose_name="state")),
                ("started_at_ms", models.BigIntegerField(verbose_name="started at (ms)")),
                (
                    "finished_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="finished at (ms)"),
                ),
                (
                    "heartbeat_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="heartbeat at (ms)"),
                ),
                (
                    "started_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django_runstore.models.fields.EpochMillisAsDatetime(
                            "started_at_ms"
                        ),
                        output_field=models.DateTimeField(null=True),
                        verbose_name="started",
                    ),
                ),
                (
                    "finished_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django_runstore.models.fields.EpochMillisAsDatetime(
                            "finished_at_ms"
                        ),
                        output_field=models.DateTimeField(null=True),
                        verbose_name="finished",
                    ),
                ),
                (
                    "checkpoint_json",
                    models.TextField(blank=True, null=True, verbose_name="checkpoint"),
                ),
                ("error_json", models.TextField(blank=True, null=True, verbose_name="error")),
                ("outcome_json", models.TextField(blank=True, null=True, verbose_name="outcome")),
                (
                    "meta_json",
                    models.TextField(db_default="null", default="null", verbose_name="meta"),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="runstore.run",
                        verbose_name="run",
                    ),
                ),
            ],
            options={
                "verbose_name": "attempt",
                "verbose_name_plural": "attempts",
                "db_table": "runstore_attempt",
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "step_key_hash", "attempt"), name="runstore_attempt_key"
                    ),
                    models.CheckConstraint(
                        condition=django_runstore.models.constraints.HasBytes("meta_json"),
                        name="runstore_attempt_meta_json_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("step_key_digest", ""), _negated=True),
                        name="runstore_attempt_step_key_digest_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state", ""), _negated=True),
                        name="runstore_attempt_state_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attempt__gte", 0), ("attempt__lte", 9007199254740991)),
                        name="runstore_attempt_attempt_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("started_at_ms__gte", 0), ("started_at_ms__lte", 9007199254740991)
                        ),
                        name="runstore_attempt_started_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("finished_at_ms__isnull", True),
                            models.Q(
                                ("finished_at_ms__gte", 0),
                                ("finished_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_attempt_finished_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("heartbeat_at_ms__isnull", True),
                            models.Q(
                                ("heartbeat_at_ms__gte", 0),
                                ("heartbeat_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_attempt_heartbeat_at_ms_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RunTombstone",
            fields=[
                (
                    "run_id",
                    django_runstore.models.fields.DurableTextField(
                        primary_key=True, serialize=False, verbose_name="run"
                    ),
                ),
                ("revision", models.BigIntegerField(verbose_name="revision")),
                (
                    "revision_xid",
                    models.BigIntegerField(default=0, verbose_name="writing transaction"),
                ),
            ],
            options={
                "verbose_name": "run tombstone",
                "verbose_name_plural": "run tombstones",
                "db_table": "runstore_run_tombstone",
                "managed": False,
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="StoreIdentity",
            fields=[
                ("id", models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                (
                    "identity",
                    django_runstore.models.fields.DurableTextField(verbose_name="identity"),
                ),
            ],
            options={
                "verbose_name": "store identity",
                "verbose_name_plural": "store identities",
                "db_table": "runstore_store_identity",
                "managed": False,
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="JournalCheckpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("run_id", django_runstore.models.fields.DurableTextField(verbose_name="run")),
                (
                    "companion",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="", default="", verbose_name="companion"
                    ),
                ),
                ("seq", models.BigIntegerField(verbose_name="sequence")),
                ("state_json", models.TextField(verbose_name="state")),
                ("created_at_ms", models.BigIntegerField(verbose_name="created at (ms)")),
                (
                    "compacted_at_ms",
                    models.BigIntegerField(blank=True, null=True, verbose_name="compacted at (ms)"),
                ),
            ],
            options={
                "verbose_name": "journal checkpoint",
                "verbose_name_plural": "journal checkpoints",
                "db_table": "runstore_journal_checkpoint",
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run_id", "companion", "seq"), name="runstore_checkpoint_sequence"
                    ),
                    models.CheckConstraint(
                        condition=django_runstore.models.constraints.HasBytes("state_json"),
                        name="runstore_checkpoint_state_json_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("run_id", ""), _negated=True),
                        name="runstore_checkpoint_run_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("seq__gte", 0), ("seq__lte", 9007199254740991)),
                        name="runstore_checkpoint_seq_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("created_at_ms__gte", 0), ("created_at_ms__lte", 9007199254740991)
                        ),
                        name="runstore_checkpoint_created_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("compacted_at_ms__isnull", True),
                            models.Q(
                                ("compacted_at_ms__gte", 0),
                                ("compacted_at_ms__lte", 9007199254740991),
                            ),
                            _connector="OR",
                        ),
                        name="runstore_checkpoint_compacted_at_ms_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JournalDedup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("run_id", django_runstore.models.fields.DurableTextField(verbose_name="run")),
                (
                    "companion",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="", default="", verbose_name="companion"
                    ),
                ),
                ("source_hash", models.BinaryField(max_length=32, verbose_name="source digest")),
                ("source_seq", models.BigIntegerField(verbose_name="source sequence")),
                ("seq", models.BigIntegerField(verbose_name="sequence")),
                ("content_hash", models.BinaryField(max_length=32, verbose_name="content digest")),
            ],
            options={
                "verbose_name": "compacted journal identity",
                "verbose_name_plural": "compacted journal identities",
                "db_table": "runstore_journal_dedup",
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run_id", "companion", "source_hash", "source_seq"),
                        name="runstore_dedup_source",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("run_id", ""), _negated=True),
                        name="runstore_dedup_run_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("seq__gte", 0), ("seq__lte", 9007199254740991)),
                        name="runstore_dedup_seq_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("source_seq__gte", 0), ("source_seq__lte", 9007199254740991)
                        ),
                        name="runstore_dedup_source_seq_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JournalEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("run_id", django_runstore.models.fields.DurableTextField(verbose_name="run")),
                (
                    "companion",
                    django_runstore.models.fields.DurableTextField(
                        blank=True, db_default="", default="", verbose_name="companion"
                    ),
                ),
                ("seq", models.BigIntegerField(verbose_name="sequence")),
                (
                    "source_id",
                    django_runstore.models.fields.DurableTextField(verbose_name="source"),
                ),
                ("source_hash", models.BinaryField(max_length=32, verbose_name="source digest")),
                ("source_seq", models.BigIntegerField(verbose_name="source sequence")),
                ("emitted_at_ms", models.BigIntegerField(verbose_name="emitted at (ms)")),
                (
                    "emitted_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django_runstore.models.fields.EpochMillisAsDatetime(
                            "emitted_at_ms"
                        ),
                        output_field=models.DateTimeField(null=True),
                        verbose_name="emitted",
                    ),
                ),
                (
                    "event_type",
                    django_runstore.models.fields.DurableTextField(verbose_name="event type"),
                ),
                ("payload_json", models.TextField(verbose_name="payload")),
                (
                    "meta_json",
                    models.TextField(db_default="null", default="null", verbose_name="meta"),
                ),
            ],
            options={
                "verbose_name": "journal entry",
                "verbose_name_plural": "journal entries",
                "db_table": "runstore_journal_entry",
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run_id", "companion", "seq"), name="runstore_journal_sequence"
                    ),
                    models.UniqueConstraint(
                        fields=("run_id", "companion", "source_hash", "source_seq"),
                        name="runstore_journal_source",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("run_id", ""), _negated=True),
                        name="runstore_journal_run_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("source_id", ""), _negated=True),
                        name="runstore_journal_source_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("event_type", ""), _negated=True),
                        name="runstore_journal_event_type_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("seq__gte", 0), ("seq__lte", 9007199254740991)),
                        name="runstore_journal_seq_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("source_seq__gte", 0), ("source_seq__lte", 9007199254740991)
                        ),
                        name="runstore_journal_source_seq_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("emitted_at_ms__gte", 0), ("emitted_at_ms__lte", 9007199254740991)
                        ),
                        name="runstore_journal_emitted_at_ms_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JournalGeneration",
            fields=[
                (
                    "run_id",
                    django_runstore.models.fields.DurableTextField(
                        primary_key=True, serialize=False, verbose_name="run"
                    ),
                ),
                ("generation", models.BigIntegerField(verbose_name="generation")),
                ("after_seq", models.BigIntegerField(verbose_name="after sequence")),
            ],
            options={
                "verbose_name": "journal generation",
                "verbose_name_plural": "journal generations",
                "db_table": "runstore_journal_generation",
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("run_id", ""), _negated=True),
                        name="runstore_generation_run_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("generation__gte", 1), ("generation__lte", 9007199254740991)
                        ),
                        name="runstore_generation_generation_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("after_seq__gte", -1), ("after_seq__lte", 9007199254740991)
                        ),
                        name="runstore_generation_after_seq_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SupervisorProcess",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host_id", django_runstore.models.fields.DurableTextField(verbose_name="host")),
                ("pid", models.BigIntegerField(verbose_name="pid")),
                ("nonce", django_runstore.models.fields.DurableTextField(verbose_name="nonce")),
                ("started_at_ms", models.BigIntegerField(verbose_name="started at (ms)")),
                ("pulsed_at_ms", models.BigIntegerField(verbose_name="last pulse at (ms)")),
                ("version", django_runstore.models.fields.DurableTextField(verbose_name="version")),
                (
                    "queues_json",
                    models.TextField(help_text="Null for all queues.", verbose_name="queues"),
                ),
                (
                    "capacity",
                    models.IntegerField(
                        help_text="How many runs at once.", verbose_name="capacity"
                    ),
                ),
                (
                    "is_draining",
                    models.BooleanField(db_default=False, default=False, verbose_name="draining"),
                ),
                (
                    "hears_notices",
                    models.BooleanField(
                        help_text="False when it only polls. Null where notices are not used.",
                        null=True,
                        verbose_name="hears notices",
                    ),
                ),
            ],
            options={
                "verbose_name": "supervisor",
                "verbose_name_plural": "supervisors",
                "db_table": "runstore_supervisor",
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("host_id", "pid", "nonce"), name="runstore_supervisor_owner"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("host_id", ""), _negated=True),
                        name="runstore_supervisor_host_id_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("nonce", ""), _negated=True),
                        name="runstore_supervisor_nonce_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("pid__gte", 0), ("pid__lte", 9007199254740991)),
                        name="runstore_supervisor_pid_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("started_at_ms__gte", 0), ("started_at_ms__lte", 9007199254740991)
                        ),
                        name="runstore_supervisor_started_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("pulsed_at_ms__gte", 0), ("pulsed_at_ms__lte", 9007199254740991)
                        ),
                        name="runstore_supervisor_pulsed_at_ms_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("capacity__gte", 0), ("capacity__lte", 9007199254740991)
                        ),
                        name="runstore_supervisor_capacity_range",
                    ),
                ],
            },
        ),
        # hand-written from here
        migrations.RunPython(
            tune_run_table, migrations.RunPython.noop, hints={"model_name": "run"}
        ),
        migrations.RunPython(
            create_revision_tables, drop_revision_tables, hints={"model_name": "run"}
        ),
        InstallTriggers(),
    ]
