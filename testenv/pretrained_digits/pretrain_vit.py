"""Train the small transformer on printed letters: python -m ianvs.testenv.pretrained_digits.pretrain_vit [FILE]"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ianvs.authoring import TorchLearner
from ianvs.testenv.pretrained_digits.printed_letters import LETTERS, printed_letters

FILE = "vit_letters.pt"


class ArrayTrainData:
    """TrainData of two arrays. x: (N, height, width, channels) in [0, 1]. y: (N,)."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y
        self.ids = np.arange(len(y)).astype(str)

    def __len__(self) -> int:
        return len(self.y)

    def tensors(self, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.from_numpy(np.ascontiguousarray(self.x)).permute(0, 3, 1, 2)
        return x.to(device), torch.from_numpy(self.y).to(device)


def pretrain(file: Path, epochs: int = 8, count: int = 300) -> None:
    """Write the state_dict of the trained network to `file`."""
    learner = TorchLearner(
        network="vit", optimizer="adam", learning_rate=0.002, batch_size=64, epochs=epochs, decay="cosine", warm_up=0.1
    )
    data: Any = ArrayTrainData(*printed_letters(count))
    learner.train(data, None, num_classes=len(LETTERS), classes_seen=range(len(LETTERS)), seed=0)
    torch.save(learner.network.state_dict(), file)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else FILE)
    pretrain(target)
    print(f"written: {target.absolute()}")
