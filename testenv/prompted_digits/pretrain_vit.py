"""Train the small transformer on the digits 6 to 9: python -m ianvs.testenv.prompted_digits.pretrain_vit [FILE]"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ianvs.authoring import TorchLearner
from ianvs.testenv.prompted_digits.digit_halves import high_digits

FILE = "vit_digits_6_to_9.pt"


class Shown:
    """Samples as a learner asks for them. x: (N, height, width, channels) uint8. y: (N,)."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y
        self.ids = np.arange(len(y)).astype(str)

    def __len__(self) -> int:
        return len(self.y)

    def tensors(self, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.from_numpy(np.ascontiguousarray(self.x)).permute(0, 3, 1, 2)
        return x.to(device), torch.from_numpy(self.y).to(device)


def pretrain(file: Path, epochs: int = 12) -> None:
    """Write the state_dict of the trained network to `file`; about a minute on one core."""
    learner = TorchLearner(network="vit", optimizer="adam", learning_rate=0.002, batch_size=64, epochs=epochs)
    data: Any = Shown(*high_digits())
    learner.train(data, None, num_classes=16, classes_seen=range(16), seed=0)
    torch.save(learner.network.state_dict(), file)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else FILE)
    pretrain(target)
    print(f"written: {target.absolute()}")
