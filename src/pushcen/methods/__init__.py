"""Methods: one short file per algorithm, found by name."""

from pushcen.methods.async_dfedavg import AsyncDFedAvg
from pushcen.methods.divshare import DivShare
from pushcen.methods.independent import Independent
from pushcen.methods.lean import PushCenLean
from pushcen.methods.method import Method, Place
from pushcen.methods.push_sum import PushSum
from pushcen.methods.pushcen import PushCen
from pushcen.methods.registry import GROUP, method_loaded, method_name, method_named, methods
from pushcen.methods.swift import Swift, SwiftRandom

__all__ = [
    "GROUP",
    "AsyncDFedAvg",
    "DivShare",
    "Independent",
    "Method",
    "Place",
    "PushCen",
    "PushCenLean",
    "PushSum",
    "Swift",
    "SwiftRandom",
    "method_loaded",
    "method_name",
    "method_named",
    "methods",
]
