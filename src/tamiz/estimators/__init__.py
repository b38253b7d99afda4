"""scikit-learn in, scikit-learn out: estimators that choose an engine and hold no maths."""

from tamiz.estimators.classifier import E2EFSClassifier
from tamiz.estimators.path import E2EFSPath
from tamiz.estimators.regressor import E2EFSRegressor

__all__ = ["E2EFSClassifier", "E2EFSPath", "E2EFSRegressor"]
