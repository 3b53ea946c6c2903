"""scikit-learn's own checks of an estimator, without exception."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from khot.neighbors import SubsetKNNClassifier

SMALL = {"epochs": 2, "n_candidates": 30, "batch_size": 30, "learning_rate": 0.005, "random_state": 0}


@parametrize_with_checks([SubsetKNNClassifier(n_neighbors=3, **SMALL), SubsetKNNClassifier(n_neighbors=4, **SMALL)])
def test_as_scikit_learn_wants_it(estimator, check):
    check(estimator)
