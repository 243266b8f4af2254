"""Learning: the tensors of one client. Bring a `Task`; a `Learner` merges, trains, encodes and evaluates it.

Nothing here knows of links or time: weights come as numbers, models as payloads, senders as names.
"""

from pushcen.learning.adapters import freeze_lora_a
from pushcen.learning.centroid import CentroidUpdate
from pushcen.learning.displacement import DisplacementUpdate
from pushcen.learning.distillation import DistillationUpdate
from pushcen.learning.event_steps import Batches, FitLearner
from pushcen.learning.exchange import ExchangeUpdate, LocalMomentumUpdate
from pushcen.learning.gossip import ModuloUpdate, ReplicaGossipUpdate
from pushcen.learning.held_out import label_counts, label_shares
from pushcen.learning.learner import Learner
from pushcen.learning.metrics import correct, metric_names, pooled
from pushcen.learning.numerators import NumeratorUpdate, ReplicaUpdate, RunningSumsUpdate
from pushcen.learning.per_client import PerClientOptions
from pushcen.learning.samples import Samples
from pushcen.learning.schedule import ScheduleOptions
from pushcen.learning.sgp import NumeratorStepUpdate
from pushcen.learning.sparsity import SparsityOptions
from pushcen.learning.task import Task, TaskFunction, build_task, load_task
from pushcen.learning.thresholds import ThresholdUpdate
from pushcen.learning.training import TrainingOptions
from pushcen.learning.update import OFFERED, CodedUpdate, Update, codec_named, sparse
from pushcen.learning.weights import load_weights
from pushcen.learning.work import OFFER, Model, Outcome, Payloads, Score, State, Work

__all__ = [
    "OFFER",
    "OFFERED",
    "Batches",
    "CentroidUpdate",
    "CodedUpdate",
    "DisplacementUpdate",
    "DistillationUpdate",
    "ExchangeUpdate",
    "FitLearner",
    "Learner",
    "LocalMomentumUpdate",
    "Model",
    "ModuloUpdate",
    "NumeratorStepUpdate",
    "NumeratorUpdate",
    "Outcome",
    "Payloads",
    "PerClientOptions",
    "ReplicaGossipUpdate",
    "ReplicaUpdate",
    "RunningSumsUpdate",
    "Samples",
    "ScheduleOptions",
    "Score",
    "SparsityOptions",
    "State",
    "Task",
    "TaskFunction",
    "ThresholdUpdate",
    "TrainingOptions",
    "Update",
    "Work",
    "build_task",
    "codec_named",
    "correct",
    "freeze_lora_a",
    "label_counts",
    "label_shares",
    "load_task",
    "load_weights",
    "metric_names",
    "pooled",
    "sparse",
]
