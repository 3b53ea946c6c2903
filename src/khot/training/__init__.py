"""Training loop of the applications: one module, one loss, rows of data. It can be resumed at any step."""

from khot.training.optimizers import SGD, Adam, AdamW, RMSprop
from khot.training.processes import gather_with_grad
from khot.training.rates import Cosine, OneCycle, WarmUp
from khot.training.runs import Run, fit
from khot.training.settings import Settings
from khot.training.steps import Step

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Cosine",
    "OneCycle",
    "RMSprop",
    "Run",
    "Settings",
    "Step",
    "WarmUp",
    "fit",
    "gather_with_grad",
]
