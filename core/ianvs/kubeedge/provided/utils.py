"""Small functions of `sedna.common.utils` and `core.common.utils`, and the loggers that plugins import."""

import importlib
import logging
import socket
import sys
import time
from pathlib import Path

import yaml

# The functions of core.common.utils; the others are in `provide`.
__all__ = ["get_file_format", "get_local_time", "is_local_dir", "is_local_file", "load_module", "yaml2dict"]


def get_host_ip() -> str:
    """Return the address of this machine; 127.0.0.1 without a network. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("8.8.8.8", 80))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def is_local_file(url: str) -> bool:
    return Path(url).is_file()


def is_local_dir(url: str) -> bool:
    return Path(url).is_dir()


def get_file_format(url: str) -> str:
    """Return the suffix without its dot; "jsonforllm" of a file named metadata.json."""
    path = Path(url)
    return "jsonforllm" if path.name == "metadata.json" else path.suffix[1:]


def get_local_time() -> str:
    """Return the present time as 2026-01-31 23:59:59."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime())


def yaml2dict(url: str) -> object:
    """Return the content of a yaml file. Raises RuntimeError for a file of another suffix."""
    if Path(url).suffix not in (".yaml", ".yml"):
        raise RuntimeError(f"{url} is no yaml file: its name has to end in .yaml or .yml.")
    return yaml.safe_load(Path(url).read_text(encoding="utf-8"))


def load_module(url: str) -> None:
    """Import a file or a package under its basename. Raises RuntimeError if that fails."""
    path = Path(url)
    sys.path.insert(0, str(path.parent))
    try:
        importlib.import_module(path.name.split(".")[0])
    except Exception as error:
        raise RuntimeError(f"{url} can't be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))


def _logger(name: str) -> logging.Logger:
    logger = logging.getLogger(name)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(
            logging.Formatter("[%(asctime)-15s] %(filename)s(%(lineno)d) [%(levelname)s] - %(message)s")
        )
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return logger


SEDNA_LOGGER = _logger("sedna")
CORE_LOGGER = _logger("ianvs")
