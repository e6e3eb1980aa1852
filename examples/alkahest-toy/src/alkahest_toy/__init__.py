"""A third-party backend for alkahest, small enough to read in one sitting."""
