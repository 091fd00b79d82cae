"""Helpers without knowledge of models: checks of parameters, warnings, text for messages, files, arrays as bytes."""
