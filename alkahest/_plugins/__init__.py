"""Finding, loading and calling plugins. Nothing outside this package touches pluggy's manager."""
