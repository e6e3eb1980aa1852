"""Gröbner bases on NVIDIA GPUs: what the distribution ``alkahest-groebner-gpu`` ships.

The engine of ``alkahest-groebner`` leaves three kinds of work to a reducer, and this one does them on
a device: :mod:`~alkahest.backends.groebner_gpu.replay` runs a recorded computation for many primes
at once, :mod:`~alkahest.backends.groebner_gpu.lifting` makes rational numbers of the residues, and
:mod:`~alkahest.backends.groebner_gpu.rounds` reduces one matrix modulo one prime, and finds the rows
that a record of it needs. The
kernels are in ``kernels/*.cu``; :mod:`~alkahest.backends.groebner_gpu.twin` has each of them again in
NumPy, over the same buffers, which is how the host's part is tested where there is no GPU.
"""
