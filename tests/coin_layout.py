"""CoIN's files, made small: eight tasks, a training and a test file each, and the folders of their pictures."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

WORD = "Answer the question using a single word or phrase."
TASKS = {
    "ScienceQA": ("ScienceQA/images", "Which is a solid?\nA. air\nB. ice\nAnswer with the option's letter.", "B"),
    "TextVQA": ("TextVQA/train_images", f"What does the sign say?\n{WORD}", "stop"),
    "ImageNet": ("ImageNet", f"What is the object in the image?\n{WORD}", "hen"),
    "GQA": ("GQA/images", f"Is the cup full?\n{WORD}", "no"),
    "VizWiz": ("VizWiz/train", f"What is this?\n{WORD}", "unanswerable"),
    "Grounding": ("COCO2014/train2014", "Please provide the bounding box of: left dog.", "[0.1, 0.2, 0.5, 0.75]"),
    "VQAv2": ("COCO2014/train2014", f"What colour is it?\n{WORD}", "red"),
    "OCRVQA": ("OCR-VQA/images", f"Who wrote this book?\n{WORD}", "Ann Lee"),
}


def write_coin(folder: Path) -> None:
    """Below `folder`: Instructions/<task>/train.json and test.json, cl_dataset/<folder of pictures>."""
    draw = np.random.default_rng(0)
    for number, (task, (pictures, question, answer)) in enumerate(TASKS.items()):
        (folder / "cl_dataset" / pictures).mkdir(parents=True, exist_ok=True)
        (folder / "Instructions" / task).mkdir(parents=True)
        names = [f"{pictures}/{number:06d}{part}.jpg" for part in ("a", "b", "c")]
        for name in names:
            Image.fromarray(draw.integers(0, 256, (48, 64, 3), dtype=np.uint8)).save(folder / "cl_dataset" / name)
        turns = [{"from": "human", "value": f"<image>\n{question}"}, {"from": "gpt", "value": answer}]
        train: list[dict[str, Any]] = [
            {"id": f"{task}{i}", "image": name, "conversations": turns} for i, name in enumerate(names[:2])
        ]
        if task == "ScienceQA":  # some of its questions have no picture
            bare = [{"from": "human", "value": question.replace("solid", "gas")}, {"from": "gpt", "value": "A"}]
            train.append({"id": "bare", "conversations": bare})
        test: dict[str, Any] = {"question_id": 0, "image": names[2], "text": question, "answer": answer}
        if task == "Grounding":
            test["answer_bbox"] = json.loads(answer)
        for part, records in (("train", train), ("test", [test])):
            (folder / "Instructions" / task / f"{part}.json").write_text(json.dumps(records))
