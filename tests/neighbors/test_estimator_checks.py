"""scikit-learn's own checks of an estimator."""

from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

from khot.neighbors import SubsetKNNClassifier

SMALL = {"epochs": 2, "n_candidates": 30, "batch_size": 30, "learning_rate": 0.005, "random_state": 0}
EXCEPTIONS = {
    "check_classifiers_train": "of classes with equally many votes, predict takes the one with the nearest neighbour, "
    "the check takes the first",
}


@parametrize_with_checks(
    [SubsetKNNClassifier(n_neighbors=3, **SMALL)],
    expected_failed_checks=lambda estimator: EXCEPTIONS,
)
def test_as_scikit_learn_wants_it(estimator, check):
    check(estimator)


def test_without_equal_votes_there_is_no_exception():
    check_classifiers_train("SubsetKNNClassifier", SubsetKNNClassifier(n_neighbors=1, **SMALL))
