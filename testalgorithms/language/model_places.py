"""Locations of a base model: a folder, a GGUF file, an installed package that contains one, or a name on Hugging
Face.
"""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ianvs.base.errors import PluginError, one_line
from ianvs.base.package import GGUF, files_of, find_gguf


@dataclass(frozen=True)
class ModelPlace:
    """name: a folder on this machine, or a name on Hugging Face. gguf: the file in the folder that holds everything.

    adapter: of the folder of an adapter, the folder or name of the model that it was made for.
    """

    name: str
    local: bool
    gguf: str | None = None
    adapter: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """Further arguments of `from_pretrained` besides the name."""
        return {} if self.gguf is None else {"gguf_file": self.gguf}

    def is_here(self, revision: str | None) -> bool:
        """Return whether the model's description is in its folder, or in the Hugging Face cache."""
        if self.adapter is not None:
            return place_of(self.adapter).is_here(None)
        if self.local:
            return True
        from huggingface_hub import try_to_load_from_cache

        return isinstance(try_to_load_from_cache(self.name, "config.json", revision=revision or "main"), str)


def place_of(base_model: str) -> ModelPlace:
    """Return the location of a base model.

    A folder with a config.json was written by save_pretrained(); another one holds a GGUF file. Raises PluginError for
    a path that does not exist or holds no model, and for GGUF without the package that reads it.
    """
    path = Path(base_model).expanduser()
    files = find_gguf(base_model)
    if len(files) > 1:
        names = one_line([file.name for file in files])
        raise PluginError(
            f"base_model '{base_model}' holds several GGUF files: {names}. Give the file itself.",
            code="unreadable-file",
        )
    if files:
        require_installed(f"base_model '{base_model}' is a GGUF file, which", "llm", "gguf", "accelerate")
        return ModelPlace(str(files[0].parent), True, files[0].name)
    if path.is_file():
        raise PluginError(
            f"base_model '{base_model}' is a file, but no GGUF file. Give its folder.",
            code="unreadable-file",
        )
    if path.is_dir():
        if not any((path / name).is_file() for name in ("config.json", "adapter_config.json")):
            wanted = "expected what save_pretrained() of a model and of its tokenizer write, or one GGUF file"
            raise PluginError(
                f"base_model '{base_model}': {path.absolute()} holds no config.json; {wanted}.", code="missing-file"
            )
        return ModelPlace(str(path), True, adapter=None if (path / "config.json").is_file() else _below(path))
    if path.is_absolute() or base_model.startswith((".", "~")) or path.suffix.lower() == GGUF:
        relative = "" if path.is_absolute() else " A relative path counts from where ianvs was started."
        kind = "file" if path.suffix.lower() == GGUF else "folder"
        raise PluginError(
            f"base_model '{base_model}': there is no {kind} {path.absolute()}.{relative}", code="missing-file"
        )
    package = files_of(base_model) if "/" not in base_model else None
    if package is not None:
        raise PluginError(
            f"base_model '{base_model}': the package {package[0]} is installed, but carries no GGUF file.",
            code="unreadable-file",
        )
    return ModelPlace(base_model, False)


def _below(folder: Path) -> str:
    """Return the model that an adapter was made for; a relative path counts from the working directory, then from
    beside it.

    Raises:
        PluginError: The adapter does not name it, or lacks its weights.
    """
    try:
        named = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8")).get("base_model_name_or_path")
    except ValueError as error:
        raise PluginError(
            f"base_model '{folder}': adapter_config.json is no json: {error}", code="unreadable-file"
        ) from error
    if not named:
        raise PluginError(
            f"base_model '{folder}' is an adapter whose adapter_config.json names no `base_model_name_or_path`. Write "
            "there the folder or the name of the model that it was made for.",
            code="unreadable-file",
        )
    if not any((folder / f"adapter_model.{end}").is_file() for end in ("safetensors", "bin")):
        raise PluginError(
            f"base_model '{folder}' is an adapter without weights: there is no adapter_model.safetensors.",
            code="missing-file",
        )
    beside = folder.parent / named
    return str(beside) if not Path(named).exists() and beside.is_dir() else str(named)


def not_here(name: str) -> str:
    """Return what to do if a model given by name is not on this machine."""
    return (
        f"It is neither a folder (looked for {Path(name).absolute()}) nor an installed package nor in the Hugging Face "
        f"cache. Give the folder, fetch it with `hf download {name}`, or set `download: true`."
    )


def require_installed(feature: str, extra: str, *packages: str) -> None:
    """Raise PluginError, with the command to install them, if `feature` needs packages that are missing."""
    if absent := [name for name in packages if find_spec(name) is None]:
        lacks = f"{' and '.join(absent)}, which {'are' if len(absent) > 1 else 'is'} not installed"
        install = f"pip install 'ianvs-bench[{extra}]'"
        raise PluginError(f"{feature} needs {lacks}. Get it by: {install}", code="missing-package")
