"""Try an installed khot outside the source tree: `make wheel-check` runs this in a clean environment."""

import subprocess
import sys
from pathlib import Path


def main() -> None:
    import torch

    import khot

    home = Path(khot.__file__).parent
    assert home.is_relative_to(sys.prefix), f"khot comes from {home}, not from the wheel"
    assert (home / "py.typed").exists()
    logits = torch.arange(6.0).requires_grad_()
    chosen = khot.sample_subset(logits, k=2, temperature=0.5, generator=torch.Generator().manual_seed(0))
    chosen.square().sum().backward()
    assert torch.isclose(chosen.sum(), torch.tensor(2.0))
    assert logits.grad is not None
    assert logits.grad.norm() > 0

    command = Path(sys.executable).with_name("khot")
    run(command, "--help")
    run(command, "reproduce", "synthetic", "--samples", "200", "--out", "synthetic")
    run(command, "demo", "--out", "demo")
    assert Path("synthetic/synthetic.png").exists()
    assert Path("demo/index.html").exists()
    print(f"khot {khot.__version__} works from {home}")


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
