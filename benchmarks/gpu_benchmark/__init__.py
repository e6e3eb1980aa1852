"""The parts of ``benchmarks/gpu.py``: what is evaluated, by whom, how it is timed and shown.

In the order in which they build on each other: :mod:`formulae`, :mod:`statements` (formulae as
source text), :mod:`timing`, :mod:`contenders`, :mod:`device_rows`, :mod:`host_arrays`,
:mod:`first_call`, :mod:`small_batches`, :mod:`results`.
"""
