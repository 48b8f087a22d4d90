"""Possible values of the key `contract` of an algorithm's file."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from ianvs.base.entry_points import installed

GROUP = "ianvs.contracts"
"""The group of entry points for contracts, also used by ianvs itself."""

NATIVE = "native"
"""The native contract (`ianvs.plugins.contract`), which is built in."""


def contract_names() -> tuple[str, ...]:
    """Return all installed contracts."""
    return NATIVE, *installed(GROUP)


def _installed_name(name: str) -> str:
    names = contract_names()
    if name not in names:
        raise PydanticCustomError("literal_error", "{expected}", {"expected": " or ".join(map(repr, names))})
    return name


def _listed(schema: dict[str, Any]) -> None:
    """Offer these names in editors, without refusing others."""
    schema["anyOf"] = [{"enum": list(contract_names())}, {"type": schema.pop("type")}]


ContractName = Annotated[str, AfterValidator(_installed_name), Field(json_schema_extra=_listed)]
"""The contract of an algorithm's plugins (`ianvs.config.contracts`)."""
