"""How gapview reacts to bad input, faults and load: ``gapview-lab reliability``."""
