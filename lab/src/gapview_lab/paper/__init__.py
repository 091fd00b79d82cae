"""The experiments of the paper, repeated: ``gapview-lab reproduce``."""
