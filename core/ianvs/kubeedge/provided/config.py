"""Settings for plugins in environment variables."""

import os
from typing import Any, ClassVar

__all__ = ["BaseConfig", "Context"]


class Context:
    """Reads environment variables."""

    parameters: ClassVar[Any] = os.environ

    @classmethod
    def get_parameters(cls, param: str, default: object = None) -> Any:
        """Return the variable `param`, else `PARAM`, else `default`. An empty value counts as missing."""
        return cls.parameters.get(param) or cls.parameters.get(str(param).upper()) or default


_DEFAULTS = {
    "device_category": "CPU",
    "backend_type": "TENSORFLOW",
    "data_path_prefix": "/home/data",
    "namespace": "",
    "worker_name": "",
    "service_name": "",
    "job_name": "sedna",
    "log_level": "INFO",
    "pretrained_model_url": "./",
}


class _FromEnvironment(type):
    def __getattr__(cls, name: str) -> str | None:
        if name.startswith("__"):
            raise AttributeError(name)
        return os.environ.get(name.upper()) or _DEFAULTS.get(name)


class BaseConfig(metaclass=_FromEnvironment):
    """`BaseConfig.train_dataset_url` and so on: the environment variable of that name, read at each use."""

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)

    def get(self, item: str, default: object = "") -> object:
        """Return the variable, or `default` if it is missing or empty."""
        return getattr(self, item) or default
