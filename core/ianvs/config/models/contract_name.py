"""The names that the key `contract` of an algorithm's file may have."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from ianvs.base.entry_points import installed

GROUP = "ianvs.contracts"
"""The group of entry points by which packages bring contracts, ianvs its second one."""

NATIVE = "native"
"""Our own (`ianvs.plugins.contract`), which is built in."""


def contract_names() -> tuple[str, ...]:
    """Return all that are installed."""
    return NATIVE, *installed(GROUP)


def _installed_name(name: str) -> str:
    names = contract_names()
    if name not in names:
        raise PydanticCustomError("literal_error", "{expected}", {"expected": " or ".join(map(repr, names))})
    return name


def _listed(schema: dict[str, Any]) -> None:
    """Editors offer these names, and take others."""
    schema["anyOf"] = [{"enum": list(contract_names())}, {"type": schema.pop("type")}]


ContractName = Annotated[str, AfterValidator(_installed_name), Field(json_schema_extra=_listed)]
"""How the plugins of an algorithm are called (`ianvs.config.contracts`)."""
