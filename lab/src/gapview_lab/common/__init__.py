"""Shared by several experiments: running many tasks, storing records, console output, text."""
