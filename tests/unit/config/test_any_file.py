"""Whatever stands in the files, the answer is a job or problems with places, never another exception."""

import copy

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ianvs.base.errors import ConfigError
from ianvs.config import load_job, resolved
from tests.unit.config.conftest import ALGORITHM, JOB, TESTENV

FULL = {
    "job.yaml": JOB + "  seeds: [0, 1]\n  engine: {name: ray, address: auto}\n",
    "testenv.yaml": TESTENV
    + "  scenario: {name: x, rounds: 2}\n  using: [a]\n  model_eval: {model_metric: {name: f1}, threshold: 0}\n",
    "algorithm.yaml": ALGORITHM + "        - other_hyperparameters: {values: [constants.yaml]}\n",
    "constants.yaml": "warmup: 1\n",
}
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", ".", "a", "[x]", "${A}", "\0", "1e-3"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "url", "values", "z"]), inner),
    max_leaves=4,
)


def paths(data, path=()):
    yield path
    steps = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in steps:
        yield from paths(value, (*path, step))


def replaced(data, path, value):
    if not path:
        return value
    data = copy.copy(data)
    data[path[0]] = replaced(data[path[0]], path[1:], value)
    return data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_with_anything_anywhere_is_read_or_refused_with_a_place(files, data):
    for name, text in FULL.items():
        files.write(name, text)
    name = data.draw(st.sampled_from(sorted(FULL)))
    content = yaml.safe_load(FULL[name])
    path = data.draw(st.sampled_from(list(paths(content))))
    files.write(name, yaml.safe_dump(replaced(content, path, data.draw(ANYTHING))))
    try:
        resolved(load_job("job.yaml", environment={}))
    except ConfigError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.place is not None
            assert "\n" not in str(problem)
            for jargon in ("Input should", "Value error", "valid dictionary", "<class", "None", "dict"):
                assert jargon not in problem.message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("ab: -[]{}'\"\n\t#&*!|>%@`,?0", max_size=30))
def test_any_text_is_read_or_refused(files, text):
    files.write("testenv.yaml", text.encode())
    with pytest.raises(ConfigError) as caught:
        load_job("job.yaml", environment={})
    assert all(problem.place and "\n" not in problem.message for problem in caught.value.problems)
