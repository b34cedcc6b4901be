"""What a run is doing, or why it is not running, in a sentence or two."""

from django_runstore.admin.situation.kinds import Situation, SituationKind
from django_runstore.admin.situation.telling import situation_of

__all__ = ["Situation", "SituationKind", "situation_of"]
