"""Methods: one short file per algorithm, found by name."""

from pushcen.methods.a2cid2 import A2Cid2
from pushcen.methods.ad_psgd import AdPsgd
from pushcen.methods.async_dfedavg import AsyncDFedAvg
from pushcen.methods.choco import Choco
from pushcen.methods.d_psgd import DPsgd
from pushcen.methods.divshare import DivShare
from pushcen.methods.dspodfl import DSpodFL
from pushcen.methods.epidemic import Epidemic
from pushcen.methods.fedkd import FedKD
from pushcen.methods.independent import Independent
from pushcen.methods.lean import PushCenLean
from pushcen.methods.method import Method, Place
from pushcen.methods.moniqua import Moniqua
from pushcen.methods.push_sum import PushSum
from pushcen.methods.pushcen import PushCen
from pushcen.methods.quantized_push_sum import QuantizedPushSum
from pushcen.methods.rasgp import Rasgp
from pushcen.methods.registry import GROUP, method_loaded, method_name, method_named, methods
from pushcen.methods.sgp import Sgp
from pushcen.methods.spafl import SpaFL
from pushcen.methods.swift import Swift, SwiftRandom
from pushcen.methods.taking import check_taken

__all__ = [
    "GROUP",
    "A2Cid2",
    "AdPsgd",
    "AsyncDFedAvg",
    "Choco",
    "DPsgd",
    "DSpodFL",
    "DivShare",
    "Epidemic",
    "FedKD",
    "Independent",
    "Method",
    "Moniqua",
    "Place",
    "PushCen",
    "PushCenLean",
    "PushSum",
    "QuantizedPushSum",
    "Rasgp",
    "Sgp",
    "SpaFL",
    "Swift",
    "SwiftRandom",
    "check_taken",
    "method_loaded",
    "method_name",
    "method_named",
    "methods",
]
