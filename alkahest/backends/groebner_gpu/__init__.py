"""Gröbner bases on NVIDIA GPUs: the place that the distribution ``alkahest-groebner-gpu`` ships.

This version holds no kernel yet. Its plugin loads, registers no backend and claims no
capability, so ``capabilities()["features"]["groebner_cuda"]`` is False with it and without it.
"""
