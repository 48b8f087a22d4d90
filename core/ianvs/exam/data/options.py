"""Options of a named object, declared as a pydantic model; errors are reported at the place of the option."""

from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import ConfigError, Location, ValidationError, closest, one_line
from ianvs.config.spec import MetricSpec


class Options(BaseModel):
    """Base class of declared options: other options are refused, and values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


O = TypeVar("O", bound=Options)  # noqa: E741


def check_options(
    model: type[O], given: Mapping[str, Any], owner: str, place: Location | None, places: Mapping[str, Location]
) -> tuple[O | None, list[ValidationError]]:
    """Return (options, []), or (None, errors) that name the option, the expected value, and the closest known
    option.
    """
    try:
        return model.model_validate(dict(given)), []
    except pydantic.ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False):
            option = str(detail["loc"][0]) if detail["loc"] else ""
            code: ErrorCode = "invalid-option"
            if detail["type"] == "extra_forbidden":
                code = "unknown-option"
                names = one_line(sorted(model.model_fields)) or "none"
                message = f"{owner} has no option '{option}'.{closest(option, model.model_fields)} It takes: {names}."
            elif detail["type"] == "missing":
                code = "missing-option"
                message = f"{owner} needs the option '{option}'."
            elif not option:  # a rule between options, with its author's message
                message = f"{owner}: {detail['msg'].removeprefix('Value error, ')}"
            else:
                wanted = detail["msg"].removeprefix("Input should be ")
                message = f"'{option}' of {owner} should be {wanted}, found {detail['input']!r}."
            problems.append(ValidationError(message, places.get(option, place), code=code))
        return None, problems


def metric_options(model: type[O], name: str, spec: MetricSpec) -> O:
    """Return the options that a testenv sets for the metric of that name. Raises ConfigError."""
    options, problems = check_options(model, spec.options, f"metric '{name}'", spec.place, {})
    if options is None:
        raise ConfigError(problems)
    return options
