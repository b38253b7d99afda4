"""The compiled engine for linear models (numba): dense and sparse, all losses."""
