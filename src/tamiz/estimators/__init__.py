"""scikit-learn in, scikit-learn out: estimators that choose an engine and hold no maths."""
