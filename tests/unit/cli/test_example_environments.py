"""Which packages `ianvs examples --install` installs for an example, and whether its plugin is one that trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.base.errors import IanvsError
from ianvs.cli.ianvs_examples import example_environment
from ianvs.cli.ianvs_examples.example_environment import Environment, Environments, read_lists
from ianvs.cli.ianvs_examples.failure_owner import cause_of_refusal, needs_more_than_packages
from ianvs.cli.ianvs_examples.plugin_training import trains_weights
from tests.errors import errors_of

JOB = Path("examples/toy/bench/job.yaml")
LACKING = "a/plugin.py:3:1: {}this file imports '{}', which is not installed. {}"
KNOWN = "Install it (pip install {}), or set PYTHONPATH to the folder that has it."
UNKNOWN = "Which package has '{}' is not known here: its README may tell."


@pytest.fixture
def installed(monkeypatch) -> list[list[str]]:
    """Packages of each environment that is made; those with a version that is "9" can't be installed."""
    made: list[list[str]] = []

    def make(base, arguments, folder, name, current, beneath):
        packages = [argument for argument in arguments if not argument.startswith("-")]
        made.append(packages)
        if any(package.endswith("==9") for package in packages):
            raise IanvsError("no such version", code="invalid-interpreter")
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()

    monkeypatch.setattr(example_environment, "make_environment", make)
    return made


def with_list(checkout: Path, text: bytes, folder: str = "examples/toy") -> Environments:
    (checkout / folder).mkdir(parents=True, exist_ok=True)
    (checkout / folder / "requirements.txt").write_bytes(text)
    return Environments(checkout / "environments", {})


def test_what_the_checks_miss_is_installed_with_the_versions_of_the_example_s_list(tmp_path, installed):
    environments = with_list(tmp_path, b"# its packages\nopencv-python>=4.5  # pictures\nsedna\nretry==0.9.2\nnumpy\n")
    output = "\n".join(
        (
            LACKING.format("", "cv2", KNOWN.format("opencv-python")),
            LACKING.format("", "openai", KNOWN.format("openai")),
            LACKING.format("a function in ", "retry.api", UNKNOWN.format("retry")),
            LACKING.format("", "nobody_knows", UNKNOWN.format("nobody_knows")),
            "a/job.yaml:7:1: toy: import of plugin.py: ModuleNotFoundError: No module named 'spacy.lang'. Install it.",
            "a/job.yaml:7:1: toy: import of plugin.py: ModuleNotFoundError: No module named 'nobody_knows'.",
            LACKING.format("", "FPN", f"The checkout brings it: pip install {tmp_path}/FPN-0.1-py3-none-any.whl."),
        )
    )
    environment = environments.next(Environment(), output, JOB, tmp_path)
    wheel = f"{tmp_path}/FPN-0.1-py3-none-any.whl"
    assert set(environment.requirements) == {"opencv-python>=4.5", "openai", "retry==0.9.2", "spacy", wheel}
    assert environments.next(environment, output, JOB, tmp_path) == environment  # nothing more to install
    assert environments.next(Environment(), output, JOB, tmp_path).python == environment.python
    assert len(installed) == 1  # examples with the same needs share one


def test_the_nearest_list_decides_and_may_be_utf_16(tmp_path, installed):
    with_list(tmp_path, b"timm==1.0\n")
    environments = with_list(tmp_path, "timm==0.9\r\n".encode("utf-16"), "examples/toy/bench")
    output = LACKING.format("", "timm", KNOWN.format("timm"))
    assert environments.next(Environment(), output, JOB, tmp_path).requirements == ("timm==0.9",)


def test_a_version_that_is_not_there_gives_way_to_the_newest(tmp_path, installed):
    environments = with_list(tmp_path, b"timm==9\n")
    output = LACKING.format("", "timm", KNOWN.format("timm"))
    assert environments.next(Environment(), output, JOB, tmp_path).requirements == ("timm",)
    assert installed == [["timm==9"], ["timm"]]


def test_the_caller_s_list_is_for_jobs_whose_path_has_its_words(tmp_path, installed):
    environments = Environments(tmp_path, {"toy/bench": ["keras<3"], "other": ["torch"]})
    assert environments.first(JOB, tmp_path, "").requirements == ("keras<3",)
    assert environments.first(Path("examples/none/job.yaml"), tmp_path, "") == Environment()


def test_what_the_code_can_do_without_is_installed_if_its_list_has_it(tmp_path, installed):
    environments = with_list(tmp_path, b"no-such-one>=2\npython-pptx\nnumpy==1.0\nnever_imported\n")
    source = "try:\n    from no_such_one.parts import a\nexcept ImportError: ...\nimport pptx\nimport numpy\n"
    assert environments.first(JOB, tmp_path, source).requirements == ("no-such-one>=2", "python-pptx")


def test_a_list_of_another_form_is_refused(tmp_path):
    file = tmp_path / "requirements.yaml"
    assert read_lists(None) == {}
    file.write_text("examples/toy: [keras<3]\n")
    assert read_lists(file) == {"examples/toy": ["keras<3"]}
    file.write_text("- keras\n")
    assert errors_of(read_lists, file) == [("invalid-record", "")]
    assert errors_of(read_lists, tmp_path / "nowhere.yaml") == [("missing-file", "")]


def test_nothing_is_installed_where_that_would_not_help():
    assert not needs_more_than_packages(LACKING.format("", "cv2", KNOWN.format("opencv-python")))
    assert needs_more_than_packages(
        "a/plugin.py:3:1: this file imports the name 'X' from b.py, which does not define it."
    )
    assert not needs_more_than_packages("warning: a/job.yaml:3:1: there is no file 'x'.")


@pytest.mark.parametrize(
    ("body", "trains"),
    [
        ("print('no need to train')", False),
        ('"""Nothing to do."""\n        LOGGER.info("trained")\n        return self.path', False),
        ("return", False),
        ("self.trainer.fit(data)", True),
        ("self.network = train(data)\n        return self.path", True),
    ],
)
def test_a_train_that_only_says_something_trains_nothing(tmp_path, body, trains):
    file = tmp_path / "plugin.py"
    file.write_text(f"class Model:\n    def train(self, data):\n        {body}\n")
    assert trains_weights([file], "optimizer = torch.optim.SGD(parameters)") == trains
    assert not trains_weights([file], "poses = filtered(points)")  # no weights anywhere
    assert not trains_weights([file], 'def f():\n    """Learns optimal poses."""  # no optimizer')  # prose


def test_a_name_that_an_installed_package_has_no_more_is_not_missing_from_the_checkout(tmp_path):
    line = (
        "a/job.yaml:8:13: classification: import of plugin.py: plugin.py:24: ImportError: cannot import name 'Old' "
        "from 'transformers' (/env/lib/python3.11/site-packages/transformers/__init__.py)"
    )
    assert cause_of_refusal(line, tmp_path)[0] == "package transformers, too new"
