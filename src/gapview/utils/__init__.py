"""Helpers without knowledge of models: checks of parameters, warnings, words, names, files."""
