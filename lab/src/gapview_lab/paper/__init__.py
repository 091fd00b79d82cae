"""The experiments of the paper, run again: what ``gapview-lab reproduce`` does."""
