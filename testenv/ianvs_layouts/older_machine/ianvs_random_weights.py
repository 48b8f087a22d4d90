"""Random weights in place of pretrained weights that a plugin's library would download.

Libraries: torch's hub, transformers, ultralytics, keras' `load_weights`, llama_cpp, spacy, sentence_transformers.
Existing weights are loaded as usual.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from ianvs_records import record

_MOST = 200_000_000  # parameters of a network that is created


class RandomWeights(dict[str, Any]):
    """A missing checkpoint: each entry is again one, and a network that loads it keeps its own weights."""

    def __missing__(self, key: str) -> "RandomWeights":
        return self

    def __contains__(self, key: object) -> bool:
        return True

    def get(self, key: str, default: object = None) -> "RandomWeights":
        return self


def _torch(torch: Any) -> None:
    whole, load_state_dict = torch.hub.load_state_dict_from_url, torch.nn.Module.load_state_dict

    def from_url(url: str, *given: Any, **named: Any) -> Any:
        name = Path(urlparse(url).path).name
        architecture = re.split(r"-[0-9a-f]{8}", name)[0]
        if (Path(torch.hub.get_dir()) / "checkpoints" / name).is_file():
            return whole(url, *given, **named)
        from torchvision import models

        if architecture not in models.list_models():
            return whole(url, *given, **named)
        record("random_weights", name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return models.get_model(architecture, weights=None).state_dict()

    def load_kept(self: Any, state: Any, *given: Any, **named: Any) -> Any:
        if isinstance(state, RandomWeights):
            return torch.nn.modules.module._IncompatibleKeys([], [])
        return load_state_dict(self, state, *given, **named)

    torch.hub.load_state_dict_from_url = from_url
    torch.nn.Module.load_state_dict = load_kept


def _transformers(modeling_utils: Any) -> None:
    whole = modeling_utils.PreTrainedModel.from_pretrained.__func__

    def from_pretrained(cls: Any, name: Any = None, *given: Any, **named: Any) -> Any:
        if name is None or os.path.exists(name) or cls.config_class is None:  # noqa: PTH110
            return whole(cls, name, *given, **named)
        import torch

        config = named.get("config") or cls.config_class()
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in cls(config).parameters())
        if size > _MOST:
            return whole(cls, name, *given, **named)
        record("random_weights", str(name))
        torch.manual_seed(0)
        return cls(config).eval()

    modeling_utils.PreTrainedModel.from_pretrained = classmethod(from_pretrained)


def _image_processors(base: Any) -> None:
    whole = base.ImageProcessingMixin.from_pretrained.__func__

    def from_pretrained(cls: Any, name: Any, *given: Any, **named: Any) -> Any:
        return whole(cls, name, *given, **named) if os.path.exists(name) else cls()  # noqa: PTH110

    base.ImageProcessingMixin.from_pretrained = classmethod(from_pretrained)


def _ultralytics(downloads: Any) -> None:
    whole = downloads.attempt_download_asset

    def attempt(file: Any, *given: Any, **named: Any) -> Any:
        made = Path(os.environ["IANVS_RECORDS"]) / Path(file).name
        if Path(file).exists() or not re.fullmatch(r"yolo(v8|11)[nsmlx](-\w+)?\.pt", made.name):
            return whole(file, *given, **named)
        if not made.exists():
            _detector(made)
        record("random_weights", made.name)
        return str(made)

    downloads.attempt_download_asset = attempt


def _detector(file: Path) -> None:
    """Write a detector whose scores vary so much that some boxes are accepted, whatever the classes are."""
    import torch
    from ultralytics import YOLO

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        detector = YOLO(f"{file.stem}.yaml")
        network = detector.model.train()
        for branch in network.model[-1].cv3:
            torch.nn.init.constant_(branch[-2].bn.weight, 30.0)
        norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.momentum = None  # batch statistics of these inputs, so evaluation has the same spread as training
        with torch.no_grad():
            network(torch.rand(4, 3, 320, 320))
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
    detector.save(file)


def _keras(saving_api: Any) -> None:
    whole = saving_api.load_weights

    def load_weights(model: Any, filepath: Any, *given: Any, **named: Any) -> Any:
        if os.path.exists(filepath):  # noqa: PTH110
            return whole(model, filepath, *given, **named)
        record("random_weights", Path(filepath).name)
        return None

    saving_api.load_weights = load_weights


def _llama(llama: Any) -> None:
    whole = llama.Llama.__init__

    def begin(self: Any, model_path: str, *given: Any, **named: Any) -> None:
        if not os.path.exists(model_path):  # noqa: PTH110
            record("random_weights", Path(model_path).name)
            model_path = os.environ["IANVS_TINY_GGUF"]
        whole(self, model_path, *given, **named)

    llama.Llama.__init__ = begin


def _spacy(util: Any) -> None:
    whole = util.load_model

    def load_model(name: Any, *given: Any, **named: Any) -> Any:
        try:
            return whole(name, *given, **named)
        except OSError:  # it is not installed
            import spacy

            record("random_weights", f"{name} (a pipeline that finds nothing)")
            return spacy.blank(str(name)[:2])

    util.load_model = load_model


def _sentences(package: Any) -> None:
    whole = package.SentenceTransformer.__init__

    def begin(self: Any, name: Any = None, *given: Any, **named: Any) -> None:
        if name is not None and not os.path.exists(name) and "IANVS_TINY_MODEL" in os.environ:  # noqa: PTH110
            record("random_weights", str(name))
            name = os.environ["IANVS_TINY_MODEL"]
        whole(self, name, *given, **named)

    package.SentenceTransformer.__init__ = begin


CHANGES: dict[str, Callable[[Any], None]] = {
    "torch": _torch,
    "transformers.modeling_utils": _transformers,
    "transformers.image_processing_base": _image_processors,
    "ultralytics.utils.downloads": _ultralytics,
    "keras.src.saving.saving_api": _keras,
    "llama_cpp.llama": _llama,
    "spacy.util": _spacy,
    "sentence_transformers": _sentences,
}
