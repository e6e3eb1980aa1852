"""Evaluation on the CPU with NumPy: the reference that every other backend is compared with."""
