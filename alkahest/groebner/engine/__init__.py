"""The F4 engine: exponent and coefficient arrays in, reduced Gröbner bases out.

The modules follow the algorithm. :mod:`~alkahest.groebner.engine.packing` turns exponents into
machine words that add and compare like monomials; :mod:`~alkahest.groebner.engine.pairs` keeps the
critical pairs; :mod:`~alkahest.groebner.engine.symbolic` makes a matrix of them, with the help of
the matrix before (:mod:`~alkahest.groebner.engine.earlier`);
:mod:`~alkahest.groebner.engine.reduction` reduces it; :mod:`~alkahest.groebner.engine.f4` is the
loop. :mod:`~alkahest.groebner.engine.trace` is the record of a run, which
:mod:`~alkahest.groebner.engine.replay` follows modulo eight primes at once and
:mod:`~alkahest.groebner.engine.modular` lifts to the rationals; with
:mod:`~alkahest.groebner.engine.certify` it also becomes a proof.
"""
