"""What several experiments share: running many tasks, storing records, console output, words."""
