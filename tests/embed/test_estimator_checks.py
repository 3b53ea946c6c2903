"""scikit-learn's own checks of an estimator, without exceptions."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from khot.embed import ParametricTSNE, SubsetSNE

SMALL = {"perplexity": 3, "epochs": 2, "batch_size": 20, "pretrain": False, "random_state": 0}


@parametrize_with_checks([SubsetSNE(**SMALL), ParametricTSNE(**SMALL)])
def test_as_scikit_learn_wants_it(estimator, check):
    check(estimator)
