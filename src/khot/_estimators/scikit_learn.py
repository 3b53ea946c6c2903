"""Base classes of scikit-learn with the types that scikit-learn does not declare, so that khot's classes have types."""

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    class BaseEstimator:
        """What `sklearn.base.BaseEstimator` has."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """What `sklearn.base.ClassifierMixin` has."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...  # noqa: N803

    class TransformerMixin:
        """What `sklearn.base.TransformerMixin` has."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...  # noqa: N803
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClassNamePrefixFeaturesOutMixin:
        """What `sklearn.base.ClassNamePrefixFeaturesOutMixin` has."""

        def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "ClassifierMixin", "TransformerMixin"]
