"""The search for columns that act together."""

from __future__ import annotations

from tamiz.pairs.result import Pair, PairSearch
from tamiz.pairs.search import find_pairs

__all__ = ["Pair", "PairSearch", "find_pairs"]
