"""State of a run after a step, as tensors and numbers, and back."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from khot.errors import InvalidTypeError

Record = dict[str, Any]
Weights = dict[str, Tensor]


@dataclass
class Progress:
    """Progress of a run.

    `loss`, `seconds` and `processor_seconds` are sums over the current epoch; `history` has one record for every epoch
    before it.
    """

    step: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    best_epoch: int | None = None

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Add the wall-clock time and the processor time of a block."""
        began = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - began[0]
        self.processor_seconds += time.process_time() - began[1]

    @property
    def best(self) -> Record | None:
        """Record of the best epoch."""
        return None if self.best_epoch is None else self.history[self.best_epoch]

    @property
    def epochs_since_best(self) -> int:
        """Number of epochs since the best one."""
        return len(self.history) - 1 - (-1 if self.best_epoch is None else self.best_epoch)


def check_state(module: nn.Module) -> None:
    """Refuse a module whose state holds other things than tensors."""
    for name, value in module.state_dict().items():
        if not isinstance(value, Tensor):
            raise InvalidTypeError(
                f"the state of the module must consist of tensors, but {name} is of type {type(value).__name__}: "
                "keep it outside of the state_dict"
            )


def copy_weights(module: nn.Module) -> Weights:
    """Copy of the tensors of a module's state, on the CPU."""
    return {name: _copy(value) for name, value in module.state_dict().items()}


def finite(module: nn.Module) -> bool:
    """Whether all parameters are finite."""
    return all(bool(parameter.isfinite().all()) for parameter in module.parameters())


def pack(
    modules: dict[str, nn.Module],
    optimizer: torch.optim.Optimizer,
    best: Weights,
    progress: Progress,
    precision: Any,
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and numbers of a checkpoint."""
    tensors = {
        f"{part}/{name}": value for part, module in modules.items() for name, value in copy_weights(module).items()
    }
    tensors |= {f"best/{name}": value for name, value in best.items()}
    others: dict[str, Any] = {}  # optimizers may keep numbers and None as well as tensors
    for i, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer/{i}/{name}"] = _copy(value)
            else:
                others[f"{i}/{name}"] = value
    return tensors, {"progress": asdict(progress), "optimizer": others, "precision": precision.state_dict()}


def unpack(
    tensors: dict[str, Tensor],
    numbers: dict[str, Any],
    modules: dict[str, nn.Module],
    optimizer: torch.optim.Optimizer,
    precision: Any,
) -> tuple[Weights, Progress]:
    """Restore modules, optimizer and precision from a checkpoint. Returns the best weights and the progress."""
    for part, module in modules.items():
        module.load_state_dict(_under(f"{part}/", tensors))
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for place, value in (_under("optimizer/", tensors) | numbers["optimizer"]).items():
        i, name = place.split("/", 1)
        state.setdefault(int(i), {})[name] = _laid_out_like(parameters[int(i)], value)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    precision.load_state_dict(numbers["precision"])
    return _under("best/", tensors), Progress(**numbers["progress"])


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True)


def _laid_out_like(parameter: Tensor, value: Any) -> Any:
    """Value with the parameter's strides if it has its shape; fused optimizers read both in the order of memory."""
    if not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    return torch.empty_like(parameter, dtype=value.dtype, device=value.device).copy_(value)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
