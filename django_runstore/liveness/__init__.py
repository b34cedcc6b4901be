"""
Is the recorded owner of a run still working? Every unknown answer is yes.

A check is asked only about an owner whose stamp is already stale, and True refuses the
takeover. Checks are named by dotted path in ``RUNSTORE["LIVENESS"]`` and all of them must
call the owner dead. Spec: run-store 7.1 and 7.2.
"""

from django_runstore.liveness.contract import (
    ExaminingCheck,
    LivenessCheck,
    LivenessContext,
    LivenessVerdict,
)
from django_runstore.liveness.gather import evidence_against, gather_claim_evidence, gather_evidence
from django_runstore.liveness.lease import lease_liveness, unexpired_lease
from django_runstore.liveness.lock_file import LockState, OwnerLock, look_at_lock
from django_runstore.liveness.same_host import SameHostProcess, same_host_process

__all__ = [
    "ExaminingCheck",
    "LivenessCheck",
    "LivenessContext",
    "LivenessVerdict",
    "LockState",
    "OwnerLock",
    "SameHostProcess",
    "evidence_against",
    "gather_claim_evidence",
    "gather_evidence",
    "lease_liveness",
    "look_at_lock",
    "same_host_process",
    "unexpired_lease",
]
