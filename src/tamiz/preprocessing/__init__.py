"""Prepare tables and targets for a fit: ``scaling`` of columns, ``ErfScaler``, and what task a target is.

Nothing is imported here: ``scaling`` and ``erf_scaler`` load numba, ``targets`` does not.
"""
