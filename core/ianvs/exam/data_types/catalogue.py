"""Data types by name."""

from ianvs.base.entry_points import installed
from ianvs.base.errors import PluginError, closest, one_line
from ianvs.config.spec import DataTypeSpec
from ianvs.exam.data_types.data_type import DataType
from ianvs.plugins.loader import load_once

ENTRY_POINTS = "ianvs.data_types"


def data_type(name: str, spec: DataTypeSpec | None = None) -> DataType:
    """Return the data type of a name.

    Args:
        name: The name.
        spec: An author's data type, with its file.

    Raises:
        PluginError: There is none, or it can't be loaded.
    """
    if spec is not None and spec.url is not None:
        target = load_once(str(spec.url), spec.name).target
    elif name in installed(ENTRY_POINTS):
        target = installed(ENTRY_POINTS)[name].load()
    else:
        names = installed(ENTRY_POINTS)
        raise PluginError(
            f"there is no data type '{name}'.{closest(name, names)} There are: {one_line([*names])}.",
            code="unknown-task-or-type",
        )
    if isinstance(target, type) and issubclass(target, DataType):
        return target()
    raise PluginError(f"'{name}' is no subclass of ianvs.exam.data_types.DataType.", code="broken-contract")
