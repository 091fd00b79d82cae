"""Speed of the library and its growth, each figure against a reference measured in the same run."""

from .document import write_document
from .growth import Growth, Power, fit_power
from .iterations import IterationSpeed, compare_iterations
from .plain import plain_algorithm, plain_graph
from .scale import ScaleOutcome, ScaleRequest, run_scale
from .speed import SpeedOutcome, SpeedRequest, run_speed

__all__ = [
    "Growth",
    "IterationSpeed",
    "Power",
    "ScaleOutcome",
    "ScaleRequest",
    "SpeedOutcome",
    "SpeedRequest",
    "compare_iterations",
    "fit_power",
    "plain_algorithm",
    "plain_graph",
    "run_scale",
    "run_speed",
    "write_document",
]
