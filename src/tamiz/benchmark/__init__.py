"""Protocols: splits, scores, statistics and the tables of the paper."""
