"""Of a job under `contract: ianvs`, `validate` names what is missing, each once, and runs nothing to find out."""

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.config import load_job
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.registry import metric_header
from tests.checkout import REGISTERED, Checkout
from tests.errors import recorded


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Checkout(tmp_path)


def problems(checkout):
    with pytest.raises(ConfigError) as caught:
        ianvs.validate(checkout.job)
    located_in = [(code, place.rpartition("/")[2]) for code, place in recorded(caught.value.problems)]
    return [problem.message for problem in caught.value.problems], located_in


def test_a_job_that_has_all_is_valid_and_planned(checkout):
    assert ianvs.validate(checkout.job).warnings == ()
    values = [dict(planned.case.hyperparameters) for planned in ianvs.plan(checkout.job)]
    assert values == [{"lr": lr, "epochs": epochs} for lr in (0.1, 0.2) for epochs in (1, 2)]


def test_a_case_is_another_one_where_what_it_is_handed_changes(checkout):
    def ids():
        return {planned.case.id for planned in ianvs.plan(checkout.job)}

    seen = ids()
    for change in (
        lambda: checkout.write(checkout.root / "dataset/a.png", "another picture"),
        lambda: checkout.write(checkout.root / "dataset/test.txt", "c.png dog\n"),
        lambda: checkout.write(checkout.basemodel.with_name("helper.py"), "x = 1\n"),  # not imported: no change
        lambda: checkout.change(checkout.basemodel, "import os", "import os\nimport helper\nassert helper.x"),
        lambda: checkout.change(checkout.basemodel.with_name("helper.py"), "1", "2"),
        lambda: checkout.change(checkout.testenv, "  metrics:", "  round: 3\n  metrics:"),
        lambda: checkout.change(checkout.algorithm, "  modules:", "  initial_model_url: hub/model\n  modules:"),
    ):
        change()
        now = ids()
        helper = checkout.basemodel.with_name("helper.py")
        unused = helper.exists() and "import helper" not in checkout.basemodel.read_text()
        assert (now <= seen) is unused
        seen |= now


def test_each_missing_package_is_named_once_with_what_to_do(checkout):
    package = checkout.basemodel.parent / "Net"
    checkout.change(
        checkout.basemodel,
        "import os\n",
        "import cv2\nimport nowhere_a.b\nfrom nowhere_a import c\nimport Net.train\n"
        "from core.common.log import LOGGER\nfrom sedna.datasources import BaseDataSource\nimport os\n"
        "try:\n    import nowhere_b\nexcept ImportError:\n    nowhere_b = None\n"
        "def late():\n    import nowhere_c\n",
    )
    checkout.write(package / "__init__.py", "")
    checkout.write(package / "train.py", "import sizes\nimport nowhere_a\n")
    checkout.write(package / "sizes.py", "")
    checkout.change(checkout.testenv.with_name("accuracy.py"), REGISTERED, f"import nowhere_d, cv2\n{REGISTERED}")
    found, codes = problems(checkout)
    assert {code for code, _ in codes} == {"missing-package"}
    named = sorted(message.split("'")[1] for message in found)
    assert named == ["cv2", "nowhere_a", "nowhere_d", "sizes"]  # a lazy one is a warning, an optional one is none
    assert any("opencv-python" in message for message in found)
    assert any(str(package) in message and "PYTHONPATH" in message for message in found)


def test_data_names_and_settings_are_checked_at_once(checkout):
    checkout.change(checkout.testenv, "dataset/train.txt", "dataset/gone.txt")
    checkout.change(checkout.basemodel, 'alias="Toy"', 'alias="Other"')
    checkout.change(
        checkout.testenv,
        "  metrics:",
        "  model_eval: {model_metric: {mode: no-inference, name: accuracy, url: ./nowhere.py}}\n  metrics:\n"
        "    - name: f1_score",
    )
    checkout.change(checkout.algorithm, "singletasklearning", "lifelonglearning")
    assert problems(checkout)[1] == [
        ("missing-file", "testenv.yaml:5:72"),
        ("unfit-module", "benchmarkingjob.yaml:8:15"),
        ("missing-file", "testenv.yaml:3:18"),
        ("unknown-metric", "testenv.yaml:7:13"),
        ("unregistered-name", "algorithm.yaml:5:13"),
    ]


@pytest.mark.parametrize(
    "paradigm, expected",
    [
        ("jointinference", [("missing-module", "algorithm.yaml:4:5")]),
        ("federatedlearning", [("missing-module", "algorithm.yaml:4:5")]),
        ("incrementallearning", [("missing-module", "algorithm.yaml:4:5"), ("missing-key", "testenv.yaml:1:1")]),
        ("singletasklearning_tta", [("unsupported-by-contract", "algorithm.yaml:2:18")]),
    ],
)
def test_a_paradigm_that_can_not_be_run_says_why(checkout, paradigm, expected):
    checkout.change(checkout.algorithm, "singletasklearning", paradigm)
    assert problems(checkout)[1] == expected


def test_an_unknown_order_of_joint_inference_is_refused(checkout):
    checkout.change(checkout.testenv, "  metrics:", "  hard_example_mining_mode: nothing\n  metrics:")
    checkout.change(checkout.algorithm, "singletasklearning", "jointinference")
    assert problems(checkout)[1] == [("invalid-choice", "testenv.yaml:5:29")]


def test_joint_inference_does_not_read_the_training_data(checkout):
    checkout.change(checkout.testenv, "dataset/train.txt", "dataset/gone.txt")
    checkout.change(checkout.algorithm, "singletasklearning", "jointinference")
    assert problems(checkout)[1] == [("missing-module", "algorithm.yaml:4:5")]


def test_a_testenv_may_say_of_a_plugin_metric_which_way_is_better(checkout):
    checkout.change(checkout.testenv, "- name: accuracy\n", "- name: accuracy\n      higher_is_better: false\n")
    job = load_job(checkout.job)
    [metric] = job.testenvs[0].metrics
    assert metric_header(metric).direction is False and not (job.problems or job.warnings)


def test_what_a_file_computes_has_no_direction_that_anybody_knows(checkout):
    ttft = MetricSpec(name="Time to First Token", url=checkout.basemodel, contract="ianvs")
    assert metric_header(ttft).direction is None
    assert metric_header(MetricSpec(name="forget_rate", contract="ianvs")).direction is False
    assert metric_header(MetricSpec(name="BWT", contract="ianvs")).direction is True


def test_advice_names_what_the_checkout_brings_or_a_known_package_and_guesses_nothing(checkout):
    checkout.change(
        checkout.basemodel,
        "import os\n",
        "import os\nimport llama_cpp, my_helpers\nfrom FPN_TensorFlow import net\nfrom RFNet.train import Trainer\n"
        "try:\n    import fast_json\nexcept ImportError:\n    import slow_json\n"
        "try:\n    import nowhere_b\nexcept ImportError:\n    import json as nowhere_b\n"
        "try:\n    import pickle\nexcept ImportError:\n    import nowhere_c\n",
    )
    wheel = checkout.root / "examples/resources/FPN_TensorFlow-0.1-py3-none-any.whl"
    checkout.write(wheel, "")
    places = [checkout.root / f"examples/{name}/testalgorithms" for name in ("curb", "streets")]
    for place in places:
        checkout.write(place / "RFNet/train.py", "class Trainer: pass\n")
    found = {message.split("'")[1]: message for message in problems(checkout)[0]}
    assert set(found) == {"llama_cpp", "my_helpers", "FPN_TensorFlow", "RFNet", "slow_json"}  # all at once
    assert "llama-cpp-python" in found["llama_cpp"]
    assert str(wheel) in found["FPN_TensorFlow"]
    assert f"{places[0]}, {places[1]}" in found["RFNet"] and "PYTHONPATH" in found["RFNet"]
    for name in ("my_helpers", "slow_json"):  # what pip finds under this name may be anybody's
        assert "pip install" not in found[name]


def test_records_without_a_question_and_keys_that_are_not_set_are_found(checkout, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "x")
    checkout.write(checkout.root / "dataset/test.jsonl", '{"question": "a", "answer": "b"}\n{"query": "a"}\n')
    checkout.change(checkout.testenv, "test_index: ./dataset/test.txt", "test_data: ./dataset/test.jsonl")
    [message], codes = problems(checkout)
    assert codes == [("invalid-record", "testenv.yaml:4:16")]
    assert "test.jsonl:2: " in message and "'question'" in message and "'query'" in message
    checkout.write(checkout.root / "dataset/test.jsonl", '{"question": "a", "answer": "b"}\n')
    checkout.write(checkout.basemodel.with_name("asking.py"), 'import os\nKEY = os.getenv("DEEPSEEK_API_KEY")\n')
    checkout.change(
        checkout.basemodel,
        "import os\n",
        "import os\nimport asking\nos.environ['OWN_API_KEY'] = 'x'\nos.getenv('MOCK_API_KEY', 'mock')\n"
        "def ask(): return os.environ['HF_TOKEN'], os.environ.get('SOME_TOKEN'), os.environ.get('HOME_PAGE')\n",
    )
    checkout.change(
        checkout.algorithm, "- lr: {values: [0.1, 0.2]}", "- api_key_env: {values: [GROQ_API_KEY, SOME_TOKEN]}"
    )
    warnings = ianvs.validate(checkout.job).warnings
    assert [code for code, _ in recorded(warnings)] == ["unset-variable"] * 3
    for name, warning in zip(("HF_TOKEN", "DEEPSEEK_API_KEY", "GROQ_API_KEY"), warnings, strict=True):
        assert name in warning.message


def test_a_name_that_a_file_beside_the_plugin_does_not_define_is_an_error(checkout):
    checkout.write(checkout.basemodel.with_name("nets.py"), "class Small: ...\n")
    checkout.change(checkout.basemodel, "import os\n", "import os\nfrom nets import Small, Large\n")
    messages, codes = problems(checkout)
    assert [code for code, _ in codes] == ["missing-name"] and "'Large'" in messages[0]
