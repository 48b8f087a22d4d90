"""Options of a named thing, declared as a pydantic model, checked with the place of each slip."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ianvs.base.errors import ConfigError, Place, Problem, closest, one_line
from ianvs.config.spec import MetricSpec


class Options(BaseModel):
    """Base of declared options: no others are taken, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


O = TypeVar("O", bound=Options)  # noqa: E741


def check_options(
    model: type[O], given: Mapping[str, Any], what: str, place: Place | None, places: Mapping[str, Place]
) -> tuple[O | None, list[Problem]]:
    """(options, []), or (None, problems) that name the option, what was expected, and the closest known one."""
    try:
        return model.model_validate(dict(given)), []
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False):
            option = str(detail["loc"][0]) if detail["loc"] else ""
            if detail["type"] == "extra_forbidden":
                known = one_line(sorted(model.model_fields)) or "none"
                message = f"{what} has no option '{option}'.{closest(option, model.model_fields)} It takes: {known}."
            elif detail["type"] == "missing":
                message = f"{what} needs the option '{option}'."
            elif not option:  # a rule between options, in the words of its author
                message = f"{what}: {detail['msg'].removeprefix('Value error, ')}"
            else:
                wanted = detail["msg"].removeprefix("Input should be ")
                message = f"'{option}' of {what} should be {wanted}, found {detail['input']!r}."
            problems.append(Problem(message, places.get(option, place)))
        return None, problems


def metric_options(model: type[O], name: str, spec: MetricSpec) -> O:
    """What a testenv gives the metric of that name. Raises ConfigError."""
    options, problems = check_options(model, spec.options, f"metric '{name}'", spec.place, {})
    if options is None:
        raise ConfigError(problems)
    return options
