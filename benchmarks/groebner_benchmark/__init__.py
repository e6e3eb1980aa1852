"""Timing Gröbner engines against each other on the systems that such engines are timed on."""
