"""What a saved embedding holds besides its parameters, encoder and scaling."""

from typing import Any


def state(model: Any) -> dict[str, Any]:
    """Numbers to save."""
    return {
        "estimator": type(model).__name__,
        "features": model.n_features_in_,
        "components": int(model._n_features_out),
    }


def restore(model: Any, numbers: dict[str, Any]) -> None:
    """Set the attributes that were saved."""
    model.n_features_in_, model._n_features_out = numbers["features"], numbers["components"]
