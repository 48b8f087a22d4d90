"""singletasklearning: train once, save, load, predict the test file. With compression, the saved model is quantised."""

import os
import subprocess
from pathlib import Path

from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.plugin_case import Case


def run(case: Case) -> Outcome:
    """Preprocess, train, save, load and predict, on the same instance. The case can't resume in between."""
    settings, model = case.work.algorithm, case.required_modules("basemodel")
    if hasattr(model, "preprocess"):
        with case.calling("basemodel", "preprocess"):
            model.preprocess()
    os.environ["BASE_MODEL_URL"] = settings.initial_model_url
    if case.work.exam.use_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    train = case.source(case.data("train"), "train")
    case.report("training")
    with case.calling("basemodel", "train"), case.timed("train"):
        model.train(train)
    with case.calling("basemodel", "save"):
        path = model.save(case.folder("train") + "/")
    path = settings.initial_model_url if path is None else path
    if settings.mode == "with_compression":
        path = _compressed(case, path)
    os.environ["RESULT_SAVED_URL"] = case.folder("inference") + "/"
    with case.calling("basemodel", "load"):
        model.load(path)
    case.report("predicting")
    test = case.source(case.data("test"), "inference")  # not earlier, since preprocess and train may create it
    whole = hasattr(test, "need_other_info")
    with case.calling("basemodel", "predict"), case.timed("predict"):
        result = model.predict(test if whole else test.x)
    return Outcome(result=result, handed_test_labels=whole or isinstance(test.x, dict))


def _compressed(case: Case, path: str) -> str | None:
    """Return the path of the quantised model; the path itself if it can't be quantised; None for a missing model."""
    settings = case.work.algorithm
    tool = settings.llama_quantize_path
    files = {"the saved model": path, "llama_quantize_path": tool}
    if missing := [label for label, file in files.items() if not file or not Path(file).exists()]:
        case.note(f"The model was not compressed, and is not there for load: {' and '.join(missing)} is no file.")
        return None
    if not settings.quantization_type:
        case.note("The model was not compressed: there is no quantization_type.")
        return path
    smaller = str(path).replace(".gguf", f"_{settings.quantization_type}.gguf")
    done = subprocess.run([str(tool), str(path), smaller, settings.quantization_type], capture_output=True, text=True)
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        case.note(f"The model was not compressed: {tool} ended with {done.returncode}: {output[0]}")
        return path
    return smaller
