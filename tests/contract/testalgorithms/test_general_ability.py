"""Tasks of lm-evaluation-harness on a model that was tuned, against the same computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import ianvs
from tests.errors import errors_of
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, SIZE, taught

pytest.importorskip("transformers")
pytest.importorskip("lm_eval")

from ianvs.testalgorithms.language import LanguageLearner
from tests.marks import slow

QUESTIONS = [
    {"question": "Who is mayor?", "choices": ["Ada Berg", "Red Foxes"], "right": 0},
    {"question": "Who won the cup?", "choices": ["two cents", "Red Foxes"], "right": 1},
    {"question": "Where was the fair?", "choices": ["Old Fjord", "six dimes", "Ada"], "right": 0},
    {"question": "What does milk cost?", "choices": ["Old", "bread", "six dimes"], "right": 2},
    {"question": "What is the sum?", "choices": ["nothing", "all"], "right": 1},
]
TASK = """
task: small_town
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: right
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS))
    (tmp_path / "small_town.yaml").write_text(TASK.format(file=tmp_path / "questions.jsonl"))
    return tmp_path / "small_town.yaml"


def by_hand(learner: LanguageLearner, questions: list[dict]) -> float:
    """Share of questions whose right choice is the likeliest continuation."""
    tokenizer, right = learner.template.tokenizer, 0
    for one in questions:
        start = tokenizer(one["question"], add_special_tokens=False)["input_ids"]
        likelihoods = []
        for choice in one["choices"]:
            whole = tokenizer(f"{one['question']} {choice}", add_special_tokens=False)["input_ids"]
            with torch.no_grad():
                said = learner.network(torch.tensor([whole])).logits[0].log_softmax(-1)
            likelihoods.append(sum(float(said[k - 1, whole[k]]) for k in range(len(start), len(whole))))
        right += max(range(len(likelihoods)), key=likelihoods.__getitem__) == one["right"]
    return right / len(questions)


@pytest.mark.slow
@pytest.mark.parametrize("tuning", ["lora", "full"])
def test_the_number_is_the_share_of_right_choices(task: Path, tuning: str) -> None:
    learner = LanguageLearner(**{**SIZE, "epochs": 12}, tuning=tuning, general_tasks=str(task))
    assert learner.measured() == {}  # a tiny model that was taught nothing has no tokens
    taught(learner, (FIRST,))
    assert learner.measured() == {"lm_eval_small_town": pytest.approx(by_hand(learner, QUESTIONS))}
    assert list(learner.measures) == ["lm_eval_small_town"]
    few = LanguageLearner(**SIZE, general_tasks=str(task), general_limit=2)
    taught(few, (FIRST,))
    assert few.measured() == {"lm_eval_small_town": pytest.approx(by_hand(few, QUESTIONS[:2]))}


@pytest.mark.slow
def test_measuring_does_not_change_what_is_learnt(task: Path) -> None:
    asked, plain = (LanguageLearner(**SIZE, general_tasks=tasks) for tasks in (str(task), ""))
    for learner in (asked, plain):
        taught(learner, (FIRST,))
        learner.measured()
        taught(learner, (SECOND,), first=2)
    for one, other in zip(asked.network.parameters(), plain.network.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_it_is_a_column_of_the_leaderboard(task: Path, tmp_path: Path) -> None:
    (tmp_path / "testenv.yaml").write_text(
        "testenv:\n  dataset: {name: yearly_news, years: 2, recurring: 1, once: 1}\n"
        "  scenario: {name: domain-incremental}\n  metrics: [{name: lexical_similarity}]\n"
    )
    sizes = "".join(f"        - {name}: {{values: [{value}]}}\n" for name, value in SIZE.items())
    (tmp_path / "sequential.yaml").write_text(
        "algorithm:\n  paradigm_type: incrementallearning\n  modules:\n    - type: basemodel\n      name: Sequential\n"
        "      url: ianvs.testalgorithms.language.sequential.basemodel\n      hyperparameters:\n"
        f"{sizes}        - general_tasks: {{values: ['{task}']}}\n"
    )
    (tmp_path / "job.yaml").write_text(
        f"benchmarkingjob:\n  name: general\n  workspace: {tmp_path}/ws\n  testenv: ./testenv.yaml\n"
        "  test_object: {type: algorithms, algorithms: [{name: sequential, url: ./sequential.yaml}]}\n"
        "  rank: {sort_by: [{lexical_similarity: descend}]}\n"
    )
    results = ianvs.run(tmp_path / "job.yaml", engine="inline")  # a process would import the harness once more
    [case] = results
    assert [sorted(one.measures) for one in case.rounds] == [[], ["lm_eval_small_town"], ["lm_eval_small_town"]]
    header, row = (tmp_path / "ws" / results.name / "rank" / "all_rank.csv").read_text().splitlines()
    column = header.split(",").index("Lm_eval_small_town")
    assert float(row.split(",")[column]) == pytest.approx(case.rounds[-1].measures["lm_eval_small_town"], abs=1e-6)
    before = [planned.case.id for planned in ianvs.plan(tmp_path / "job.yaml")]
    task.write_text(task.read_text() + "\n# another\n")
    assert [planned.case.id for planned in ianvs.plan(tmp_path / "job.yaml")] != before


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("./nowhere.yaml", "missing-file"),
        slow("arc_esy", "invalid-choice"),
        ("arc_easy, arc_easy", "conflicting-keys"),
    ],
)
def test_what_is_no_task_is_refused_before_anything_is_trained(given: str, code: str) -> None:
    assert errors_of(lambda: LanguageLearner(**SIZE, general_tasks=given).check_exam()) == [(code, "")]


def test_a_file_that_names_no_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text("dataset_path: json\n")
    assert errors_of(LanguageLearner, **SIZE, general_tasks=str(tmp_path / "task.yaml")) == [("invalid-value", "")]


def test_without_lm_eval_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ianvs.testalgorithms.language.model_places.find_spec", lambda name: name != "lm_eval" or None)
    assert errors_of(LanguageLearner, **SIZE, general_tasks="arc_easy") == [("missing-package", "")]
    LanguageLearner(**SIZE)
