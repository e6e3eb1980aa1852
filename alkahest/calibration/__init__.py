"""How fast the backends are on this machine: measured once, kept, used to choose between them.

``alkahest calibrate`` measures and stores; :func:`predict` says what a call would cost,
:func:`tuned` what a backend has found out about its own code. Without a calibration nothing is
predicted, host columns stay on the host, and backends shape code by the rules they come with.
"""

from alkahest.calibration.model import BackendModel, Calibration, Cost, Model, Work
from alkahest.calibration.prediction import devices_changed, objection, predict, tuned
from alkahest.calibration.storage import VARIABLE, Stored, current, path, store

__all__ = [
    "VARIABLE",
    "BackendModel",
    "Calibration",
    "Cost",
    "Model",
    "Stored",
    "Work",
    "current",
    "devices_changed",
    "objection",
    "path",
    "predict",
    "store",
    "tuned",
]
