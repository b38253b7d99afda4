"""Rows of a table: normalisation, missing values and targets."""
