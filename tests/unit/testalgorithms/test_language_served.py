"""What a language learner tells of its weights to whoever writes its replies, and what it refuses."""

from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("peft")

from ianvs.testalgorithms.language import LanguageLearner, served
from ianvs.testalgorithms.language.moelora.basemodel import MoELoRA
from ianvs.testalgorithms.language.olora.basemodel import OLoRA
from ianvs.testalgorithms.language.served import digest_of_weights, require_servable
from tests.errors import errors_of
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SIZE, asked, taught

OPTIONS = {"base_model": "org/model", "tuning": "lora"}


def refused(learner, root="org/model", sees=False):
    server = {"url": "http://here:1", "version": "vllm 1", "name": "served", "root": root}
    require_servable(learner.options, server, learner.replying, sees=sees, why_not=learner.unservable)


def test_an_adapter_on_the_model_that_the_server_has_is_served_by_its_place_or_its_name(tmp_path):
    refused(LanguageLearner(**OPTIONS))
    refused(LanguageLearner(base_model="served", tuning="lora"))
    (tmp_path / "config.json").write_text("{}")
    refused(LanguageLearner(base_model=f"{tmp_path}/../{tmp_path.name}", tuning="lora"), root=str(tmp_path))


@pytest.mark.parametrize(
    ("learner", "where"),
    [
        (lambda: LanguageLearner(base_model="org/model"), {}),  # tuning: full
        (lambda: MoELoRA(base_model="org/model"), {}),
        (lambda: OLoRA(base_model="org/model"), {}),  # two adapters at once
        (lambda: LanguageLearner(base_model="tiny", tuning="lora"), {}),
        (lambda: LanguageLearner(**OPTIONS), {"sees": True}),
        (lambda: LanguageLearner(**OPTIONS), {"root": "org/other"}),
        (lambda: LanguageLearner(**OPTIONS, use_dora=True), {}),
        (lambda: LanguageLearner(**OPTIONS, temperature=0.7), {}),
    ],
    ids=["full", "moelora", "olora", "tiny", "sees", "another model", "dora", "drawn"],
)
def test_what_no_server_can_do_is_refused(learner, where):
    assert errors_of(refused, learner(), **where) == [("refused-arguments", "")]


def test_a_gguf_file_is_refused(monkeypatch):
    learner = LanguageLearner(**OPTIONS)
    monkeypatch.setattr(served, "place_of", lambda name: SimpleNamespace(gguf="model.gguf", name=name))
    assert errors_of(refused, learner) == [("refused-arguments", "")]


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_weights_are_known_by_all_that_was_tuned(tuning):
    learner = taught(LanguageLearner(**SIZE, tuning=tuning), (FIRST,))
    before = digest_of_weights(learner.network, learner.options)
    assert digest_of_weights(learner.network, learner.options) == before
    name, weight = list(learner.weights.items())[-1]
    with torch.no_grad():
        weight.view(-1)[-1] += 1e-3
    assert digest_of_weights(learner.network, learner.options) != before, name


def test_replies_written_by_others_are_taken_as_they_are_turn_by_turn():
    learner = taught(LanguageLearner(**SIZE), (FIRST,))
    prompts = []

    def generation(asked, *, stops, max_tokens, weights_digest, adapter, generate):
        prompts.append([learner.template.text(one) for one in asked])
        assert max_tokens == SIZE["max_new_tokens"] and stops == learner.template.stops
        return [learner.template.tokenizer("Red Foxes").input_ids for _ in asked]

    generation.engine = "transformers"
    said = learner.predict(asked(FIRST), generation=generation)
    assert said == [["Red Foxes"] * len(turns) for turns in FIRST.y]
    assert [len(turn) for turn in prompts] == [4, 1]


def test_what_the_network_says_is_told_without_what_fills_its_row():
    learner = taught(LanguageLearner(**{**SIZE, "epochs": 40, "learning_rate": 4e-3}), (FIRST,))
    told = []

    def generation(asked, *, generate, **how):
        told.extend(generate(list(range(len(asked)))))
        return told[-len(asked) :]

    generation.engine = "transformers"
    assert learner.predict(asked(FIRST), generation=generation) == learner.predict(asked(FIRST))
    assert all(token not in learner.template.stops for one in told for token in one[:-1])
    assert len({len(one) for one in told}) > 1
