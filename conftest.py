"""Skip the examples of modules whose optional package is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/gapview/graph/neighbors/torch_search.py"]
