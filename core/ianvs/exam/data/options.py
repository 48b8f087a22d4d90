"""Options of a named thing, declared as a pydantic model, checked with the place of each slip."""

from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import ConfigError, Location, ValidationError, closest, one_line
from ianvs.config.spec import MetricSpec


class Options(BaseModel):
    """Base of declared options: no others are taken, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


O = TypeVar("O", bound=Options)  # noqa: E741


def check_options(
    model: type[O], given: Mapping[str, Any], owner: str, place: Location | None, places: Mapping[str, Location]
) -> tuple[O | None, list[ValidationError]]:
    """Return (options, []), or (None, problems) that name the option, what was expected, and the closest known one."""
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
            elif not option:  # a rule between options, in the words of its author
                message = f"{owner}: {detail['msg'].removeprefix('Value error, ')}"
            else:
                wanted = detail["msg"].removeprefix("Input should be ")
                message = f"'{option}' of {owner} should be {wanted}, found {detail['input']!r}."
            problems.append(ValidationError(message, places.get(option, place), code=code))
        return None, problems


def metric_options(model: type[O], name: str, spec: MetricSpec) -> O:
    """What a testenv gives the metric of that name. Raises ConfigError."""
    options, problems = check_options(model, spec.options, f"metric '{name}'", spec.place, {})
    if options is None:
        raise ConfigError(problems)
    return options
