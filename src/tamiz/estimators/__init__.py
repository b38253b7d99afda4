"""Estimators with scikit-learn's interface, which choose an engine and hold no maths; ``tamiz`` exports their names."""
