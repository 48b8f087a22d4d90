"""CPU seconds of tuning a language model and of its replies, beside transformers and peft used plainly.

    python benchmarks/language.py [--repeats N]

Both run in turn in this process, on one thread: the same tiny Qwen2 with the same adapter, the same conversations, as
many steps with batches of the same size. The plain loop pads each batch of a shuffled order and takes the loss of
transformers; replies are greedy, by `generate` in batches of the same size. The target is a ratio of at most 1.0.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for tests.unit

from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, logging  # noqa: E402

from ianvs.testalgorithms.language import LanguageLearner  # noqa: E402
from tests.unit.testalgorithms.conversation_fixtures import Talks, asked, talks  # noqa: E402
from tests.unit.testalgorithms.tiny_folders import SIZES, write  # noqa: E402

EPOCHS, BATCH, NEW = 2, 8, 12
WORDS = ["the", "mayor", "of", "Tarnau", "won", "a", "cup", "and", "fair", "in", "old", "town", "bread", "costs", "two"]


def conversations(count: int) -> Talks:
    draw = random.Random(0)

    def text(least: int, most: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))

    return talks(*[(None, [(text(5, 60), text(2, 12))]) for _ in range(count)])


def seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


class Plain:
    """transformers and peft as their documentation uses them."""

    def __init__(self, folder: Path, data: Talks) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        network = AutoModelForCausalLM.from_pretrained(folder)
        config = LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules="all-linear")
        self.network, self.data = get_peft_model(network, config), data

    def rows(self) -> list[tuple[list[int], list[int]]]:
        found = []
        for x, y in zip(self.data.x, self.data.y, strict=True):
            prompt = [{"role": "user", "content": x["user"][0]}]
            whole = [*prompt, {"role": "assistant", "content": y[0]}]
            before = self.tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=True)[
                "input_ids"
            ]
            tokens = self.tokenizer.apply_chat_template(whole, return_dict=True)["input_ids"]
            found.append((tokens, [-100] * len(before) + tokens[len(before) :]))
        return found

    def train(self) -> None:
        rows, pad = self.rows(), self.tokenizer.pad_token_id
        weights = [p for p in self.network.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.0)
        self.network.train()
        for _ in range(EPOCHS):
            order = torch.randperm(len(rows)).tolist()
            for start in range(0, len(order), BATCH):
                part = [rows[i] for i in order[start : start + BATCH]]
                length = max(len(tokens) for tokens, _ in part)
                tokens = torch.tensor([[*t, *[pad] * (length - len(t))] for t, _ in part])
                labels = torch.tensor([[*t, *[-100] * (length - len(t))] for _, t in part])
                seen = torch.tensor([[1] * len(t) + [0] * (length - len(t)) for t, _ in part])
                self.network(input_ids=tokens, attention_mask=seen, labels=labels).loss.backward()
                torch.nn.utils.clip_grad_norm_(weights, 1.0)
                optimizer.step()
                optimizer.zero_grad()

    @torch.inference_mode()
    def reply(self) -> list[str]:
        self.network.eval()
        self.tokenizer.padding_side = "left"
        said = []
        for start in range(0, len(self.data), BATCH):
            part = [[{"role": "user", "content": x["user"][0]}] for x in self.data.x[start : start + BATCH]]
            given = self.tokenizer.apply_chat_template(
                part, add_generation_prompt=True, padding=True, return_dict=True, return_tensors="pt"
            )
            found = self.network.generate(**given, max_new_tokens=NEW, do_sample=False)
            said += self.tokenizer.batch_decode(found[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
        return said


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--repeats", type=int, default=5)
    repeats = reading.parse_args().repeats
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    data, ratios = conversations(96), {"training": list[float](), "replies": list[float]()}
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), (Qwen2Config, {**SIZES, "hidden_size": 128, "intermediate_size": 256}))
        for _ in range(repeats):
            options = {"tuning": "lora", "lora_r": 4, "lora_alpha": 8, "epochs": EPOCHS, "batch_size": BATCH}
            ours = LanguageLearner(base_model=str(path), **options, max_new_tokens=NEW, generation_batch=BATCH)
            plain = Plain(path, data)
            ours.predict(asked(conversations(1)))  # both are built by now
            for what, mine, theirs in (
                ("training", partial(ours.train, data, None, round=1), plain.train),
                ("replies", partial(ours.predict, asked(data)), plain.reply),
            ):
                spent = seconds(mine), seconds(theirs)
                ratios[what].append(spent[0] / spent[1])
                print(f"{what}: {spent[0]:.2f} s beside {spent[1]:.2f} s", flush=True)
    for what, found in ratios.items():
        print(f"{what}: {statistics.median(found):.2f} of plain transformers and peft (median of {len(found)})")


if __name__ == "__main__":
    main()
