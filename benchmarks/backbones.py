"""Seconds (of the CPU; of the clock with a card) and memory of a round on a transformer, from a file of random weights.

    python benchmarks/backbones.py                                    # ViT-B/16 of timm, three ways of training
    python benchmarks/backbones.py --network vit_b_16 --pictures 20
    python benchmarks/backbones.py --network timm/vit_small_patch14_dinov2 --size 224 --device cuda

For each way one process writes a state_dict in the library's layout, a learner loads it, and trains one epoch on that
many pictures of 32 x 32 pixels, resized as the weights want them. Features are compared with the library's own before.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from ianvs.authoring import TorchLearner, transformer_of
from ianvs.authoring.backbones import library_model, split_head

WAYS = {"head": {"frozen": True}, "low rank": {"lora_rank": 8}, "everything": {}}


class View:
    """Pictures as the benchmark hands them over."""

    def __init__(self, count: int) -> None:
        draw = np.random.default_rng(0)
        self.x = torch.from_numpy(draw.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8))
        self.y = torch.arange(count) % 10

    def tensors(self, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        return self.x.to(device), self.y.to(device)


def one_round(said: argparse.Namespace) -> dict[str, object]:
    """What one way of training took."""
    clock = time.process_time if said.device == "cpu" else time.perf_counter
    size = {} if said.size is None else {"picture_size": said.size}
    side = said.size or 224
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        model = library_model(said.network, (side, side), False, trained=True).eval()
        torch.save(model.state_dict(), file := Path(folder) / "random.pt")
        start = clock()
        learner = TorchLearner(
            network=said.network,
            weights=str(file),
            epochs=1,
            batch_size=said.batch,
            learning_rate=0.001,
            **size,
            **WAYS[said.way],
        )
        learner._ready(View(1).x, 10, said.device, 0)
        loaded = clock() - start
    body, _, _ = split_head(model, said.network)
    with torch.no_grad():
        x = learner.prepare(View(1).x.to(said.device))
        plain = learner.network.eval()[0](x)
        equal = torch.equal(plain, body.to(said.device).eval()(x))
    del model, body
    transformer = None
    if said.way == "everything":
        transformer, _ = transformer_of(learner.network)
        equal = equal and torch.equal(transformer(x), plain)
    start = clock()
    learner.train(View(said.pictures), num_classes=10, classes_seen=tuple(range(10)), device=said.device, seed=0)
    if said.device != "cpu":
        torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() if said.device != "cpu" else 0
    return {
        "way": said.way,
        "features are the library's": equal,
        "to load [s]": round(loaded, 1),
        "a round [s]": round(clock() - start, 1),
        "memory [MB]": (peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) // 10**6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="timm/vit_base_patch16_224")
    parser.add_argument("--size", type=int, help="picture_size, if not that of the weights")
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.way:
        print(json.dumps(one_round(said)))
        return
    for way in WAYS:  # each in a process of its own: memory is its peak
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--way", way], check=True, stdout=subprocess.PIPE, text=True
        )
        print(said.network, *(f"{name} {value}" for name, value in json.loads(done.stdout).items()), sep="  ")


if __name__ == "__main__":
    main()
