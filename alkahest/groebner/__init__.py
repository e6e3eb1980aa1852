"""Gröbner bases: the place that the distribution ``alkahest-groebner`` ships.

This version holds no algorithm yet. Its plugin loads, registers no backend and claims no
capability, so ``capabilities()["features"]["groebner"]`` is False with it and without it.
"""
