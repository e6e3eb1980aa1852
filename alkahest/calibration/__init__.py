"""How fast the backends are on this machine: measured once, kept, used to choose between them.

``alkahest calibrate`` measures and stores; :func:`predict` says what a call would cost. Without a
calibration nothing is predicted, and host columns stay on the host.
"""

from alkahest.calibration.model import BackendModel, Calibration, Cost, Model, Work
from alkahest.calibration.prediction import devices_changed, objection, predict
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
]
