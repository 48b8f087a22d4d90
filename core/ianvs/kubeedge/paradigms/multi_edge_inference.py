"""multiedgeinference: one model predicts, whole or partitioned for several devices. Nothing is trained."""

import importlib
import os
from collections.abc import Mapping
from pathlib import Path

from ianvs.base.errors import PluginError
from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.plugin_case import Case


def run(case: Case) -> Outcome:
    """Load and predict; partition before that if the model is `model_parallel`."""
    model, initial = case.required_modules("basemodel"), case.work.algorithm.initial_model_url
    loaded: tuple[object, ...]
    if vars(model).get("model_parallel"):
        if hasattr(model, "partition"):
            with case.calling("basemodel", "partition"):
                folder, devices = model.partition(initial)
                loaded = folder, devices
        else:
            loaded = _partition(case, model, initial)
        keywords = {}
    else:
        loaded = (initial,)
        keywords = {"train_dataset": case.source(case.data("train"), "train")}
        os.environ["BASE_MODEL_URL"] = initial
    data = case.source(case.data("test"), "inference")
    os.environ["RESULT_SAVED_URL"] = case.folder("inference") + "/"
    with case.calling("basemodel", "load"):
        model.load(*loaded)
    with case.calling("basemodel", "predict"), case.timed("predict"):
        result = model.predict(data.x, **keywords)
    return Outcome(result=result, handed_test_labels=isinstance(data.x, Mapping))


def _partition(case: Case, model: object, initial: str) -> tuple[str, dict[str, str]]:
    """Return the folder of the parts of an onnx file, cut at the model's partition_point_list, and the device of each.

    Ianvs writes the parts beside the user's model; here they are below W, like all files.
    """
    with case.calling("basemodel", "partition_point_list"):
        points = getattr(model, "partition_point_list", None)
        if not points:
            raise PluginError(
                "model_parallel needs a method partition(path), or a partition_point_list.", code="broken-contract"
            )
        try:
            utils = importlib.import_module("onnx.utils")
        except ImportError:
            raise PluginError("a model is cut by the package onnx: pip install onnx.", code="missing-package") from None
        folder = Path(case.folder("partition"))
        devices = {}
        for i, point in enumerate(points, 1):
            name = f"sub_model_{i}.onnx"
            utils.extract_model(initial, str(folder / name), point["input_names"], point["output_names"])
            devices[name] = point["device_name"]
    return str(folder), devices
