"""Gröbner bases and polynomial systems: what the distribution ``alkahest-groebner`` ships.

From what users write to what the engine computes, and back:

* :mod:`.fields`, :mod:`.orders`, :mod:`.ring`: where polynomials live;
* :mod:`.reading`, :mod:`.polynomial`, :mod:`.text`: how they are read, held and written;
* :mod:`.basis`: Gröbner bases; :mod:`.settings`, :mod:`.computing`, :mod:`.report`: how one is
  computed by :mod:`.engine`, or over large primes by :mod:`.large_primes`; :mod:`.verification`;
* :mod:`.hilbert`, :mod:`.ideals`, :mod:`.quotient`, :mod:`.residues`, :mod:`.fglm`,
  :mod:`.lifting`: what is made of a basis;
* :mod:`.parametrisation`, :mod:`.enclosures`, :mod:`.solving`, :mod:`.triangular`,
  :mod:`.univariate`: solutions;
* :mod:`.formats`, :mod:`.command`, :mod:`.solve_command`: files and the command line.

The names for users are on ``alkahest`` itself, see :mod:`.plugin`. Nothing is imported here.
"""
