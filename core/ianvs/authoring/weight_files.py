"""Pretrained weights: finding a file, reading it, and loading what fits a network."""

import hashlib
import importlib.util
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from ianvs.base.errors import PluginError, first_line, one_line, shown_path

ENDINGS = (".safetensors", ".pt", ".pth", ".bin")
WRAPPERS = ("state_dict", "model", "network", "model_state_dict", "teacher", "ema")  # what training scripts save beside
PREFIXES = ("module.", "_orig_mod.")  # of torch's data parallel training and of torch.compile


def find_weights(weights: str) -> Path | None:
    """Return the file that `weights` refers to: a file, or the one weight file of a folder or installed package.

    None if it is none of these, and so may be a name known to the network's library.
    Raises PluginError for a missing path, or a folder or package that holds none or several.
    """
    path = Path(weights).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        return _only_one(path, path.iterdir(), shown_path(path))
    if path.suffix in ENDINGS or "/" in weights:
        raise PluginError(
            f"weights '{weights}': there is no such file (looked for {path.absolute()}).", code="missing-file"
        )
    package = importlib.util.find_spec(weights) if weights.isidentifier() else None
    if package is None or not package.submodule_search_locations:
        return None
    home = Path(package.submodule_search_locations[0])
    return _only_one(home, home.rglob("*"), f"the package {weights}")


def _only_one(home: Path, files: Iterable[Path], owner: str) -> Path:
    candidates = sorted(file for file in files if file.suffix in ENDINGS and file.is_file())
    usual = [file for file in candidates if file.name in ("model.safetensors", "pytorch_model.bin")]
    if not usual and len(candidates) != 1:
        names = one_line([file.relative_to(home).as_posix() for file in candidates]) or "none"
        raise PluginError(
            f"{owner} should hold one file of weights ({', '.join(ENDINGS)}), but holds: {names}. "
            "Name the file itself.",
            code="refused-arguments",
        )
    return (usual or candidates)[0]


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors by name of a file or folder, on the CPU; a training script's checkpoint is unwrapped.

    A prefix of data parallel training is removed. Raises PluginError for a file that can't be read or has no tensors.
    """
    if path.is_dir():
        path = _only_one(path, path.iterdir(), shown_path(path))
    held: object
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            held = load_file(path)
        else:
            held = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError:
        raise PluginError(
            f"{shown_path(path)} needs the package safetensors: pip install 'ianvs-bench[vision]'.",
            code="missing-package",
        ) from None
    except Exception as error:  # torch.load raises what it likes: EOFError, RuntimeError, UnpicklingError, ...
        raise PluginError(
            f"{shown_path(path)} can't be read as weights ({first_line(error)}). Save tensors alone: "
            "torch.save(network.state_dict(), path).",
            code="unreadable-file",
        ) from error
    for wrapper in WRAPPERS:
        if isinstance(held, dict) and isinstance(held.get(wrapper), dict):
            held = held[wrapper]
    named = held.items() if isinstance(held, Mapping) else ()
    state = {str(name): value for name, value in named if torch.is_tensor(value)}
    if not state:
        raise PluginError(
            f"{shown_path(path)} holds no tensors by name: it is no state_dict of a network.", code="unreadable-file"
        )
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return timm_names(state) if is_efficientnet_lite(state) else state


def is_plain(path: Path) -> bool:
    """Return whether another program wrote the file at `path`, not a learner's save(), which may have added ".pt"."""
    if path.is_dir() or path.suffix == ".safetensors":
        return True
    file = path if path.is_file() else path.with_name(path.name + ".pt")
    try:
        held = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, pickle.UnpicklingError, RuntimeError, EOFError):
        return file == path  # read_weights() says what is wrong with it
    return not (isinstance(held, dict) and {"shape", "network", "tasks"} <= set(held))


def fit(
    network: nn.Module, state: Mapping[str, Tensor], source: str, without: str | None = None
) -> tuple[str, list[Tensor]]:
    """Load what fits `network` by name and shape. Returns a sentence on what did not, "" if all did, and what did.

    without: the name of a module, such as a head, that is left unchanged and not reported.
    Raises PluginError if nothing fits.
    """
    own_state = network.state_dict()
    aside = () if without is None else (f"{without}.weight", f"{without}.bias")
    wanted = [name for name in own_state if name not in aside]
    fitting = [name for name in wanted if name in state and state[name].shape == own_state[name].shape]
    trained = [name for name in wanted if not name.endswith("num_batches_tracked")]
    if not set(fitting) & set(trained):
        raise PluginError(
            f"nothing in {source} fits this network. It has {one_line(list(state), 4)}; the network has "
            f"{one_line(wanted, 4)}.",
            code="refused-arguments",
        )
    with torch.no_grad():
        for name in fitting:
            own_state[name].copy_(state[name])
    other = [
        f"{name} {tuple(state[name].shape)} for {tuple(own_state[name].shape)}"
        for name in trained
        if name in state and name not in fitting
    ]
    parts = {
        "of another shape": other,
        "not in it": [name for name in trained if name not in state],
        "without a place here": [name for name in state if name not in own_state and name not in aside],
    }
    mismatches = "; ".join(f"{how}: {one_line(names, 3)}" for how, names in parts.items() if names)
    return f"of {source} did not fit: {mismatches}" if mismatches else "", [own_state[name] for name in fitting]


def digest_of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, shapes and values, regardless of their order."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        total.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


# Names of the package efficientnet_lite_pytorch, and what timm calls the same.
STEM_AND_HEAD = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
EXPANDING = {  # inverted residual: 1x1 up, depthwise, 1x1 down
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
SEPARABLE = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}  # the first block


def is_efficientnet_lite(state: Mapping[str, Tensor]) -> bool:
    """Return whether these are that package's names; EfficientNet itself also has squeeze-and-excitation."""
    return "_blocks.0._depthwise_conv.weight" in state and not any("._se_" in name for name in state)


def timm_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the same tensors in timm's names, for timm/tf_efficientnet_lite0 to lite4.

    The package numbers blocks consecutively (`_blocks.0` to `_blocks.15` in Lite0), timm by stage and depth
    (`blocks.1.0`); the widths show where a stage begins. Both compute the same function: "same" padding
    as in TensorFlow, ReLU6, batch normalisation with epsilon 1e-3.
    """
    places = _places(state)
    renamed = {}
    for name, value in state.items():
        match name.split("."):
            case ["_blocks", number, part, kind]:
                parts = EXPANDING if f"_blocks.{number}._expand_conv.weight" in state else SEPARABLE
                renamed[f"blocks.{places[int(number)]}.{parts[part]}.{kind}"] = value
            case [part, kind] if part in STEM_AND_HEAD:
                renamed[f"{STEM_AND_HEAD[part]}.{kind}"] = value
            case _:
                renamed[name] = value
    return renamed


def _places(state: Mapping[str, Tensor]) -> dict[int, str]:
    """Block number -> timm's "stage.depth": a block begins a stage if it has not as many channels in as out.

    A stage may begin with as many as it ends with (Lite0 has none such).
    """
    places: dict[int, str] = {}
    stage, depth = -1, 0
    for number in sorted({int(name.split(".")[1]) for name in state if name.startswith("_blocks.")}):
        first = state.get(f"_blocks.{number}._expand_conv.weight", state[f"_blocks.{number}._depthwise_conv.weight"])
        inputs = first.shape[1] if f"_blocks.{number}._expand_conv.weight" in state else first.shape[0]
        begins = stage < 0 or inputs != state[f"_blocks.{number}._project_conv.weight"].shape[0]
        stage, depth = (stage + 1, 0) if begins else (stage, depth + 1)
        places[number] = f"{stage}.{depth}"
    return places
