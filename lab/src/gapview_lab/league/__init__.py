"""The league: all methods on all data, without labels, and with them as an upper bound."""

from .league import LeagueOutcome, LeagueRequest, run_league
from .summary import LABEL_FREE

__all__ = ["LABEL_FREE", "LeagueOutcome", "LeagueRequest", "run_league"]
