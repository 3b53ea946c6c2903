"""Plans of trainings, one for each profile and dataset."""

from collections.abc import Mapping
from typing import TypeVar

from khot.errors import InvalidValueError

Plan = TypeVar("Plan")


def find(plans: Mapping[tuple[str, str], Plan], profile: str, dataset: str) -> Plan:
    """Plan for a profile and a dataset."""
    if (profile, dataset) not in plans:
        known = ", ".join(f"{name} ({kind})" for kind, name in plans)
        raise InvalidValueError(f"there is no profile {profile!r} for {dataset!r}: choose one of {known}")
    return plans[profile, dataset]
