"""What ``benchmarks/accuracy.py`` is made of: points, a reference, measuring, tables."""
