"""Models in folders, adapters, and how both are kept: with the real classes, made from configurations."""

import shutil

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("peft")

from peft import LoraConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, Qwen2Config, Qwen2ForCausalLM

from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.experts import MoELoraLinear, with_experts
from ianvs.testalgorithms.language.models import loading
from ianvs.testalgorithms.language.moelora.basemodel import MoELoRA
from ianvs.testalgorithms.language.tiny import tiny_tokenizer
from ianvs.testalgorithms.language.tuning_loop import warm_cosine
from tests.errors import errors_of
from tests.marks import slow
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, SIZE, asked, taught

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # within peft

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LORA = {"lora_r": 4, "lora_alpha": 8, "max_new_tokens": 8, "batch_size": 3, "epochs": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Qwen2 of two small layers, its tokenizer, its template, and settings for generation, as they are published."""
    path = tmp_path_factory.mktemp("qwen")
    tokenizer = tiny_tokenizer(["Who is mayor? Ada Berg. It is 2022."], 300)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.chat_template = CHATML
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer) + 3,  # padded, as published vocabularies are
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    network = Qwen2ForCausalLM(config)
    network.generation_config.repetition_penalty = 1.5
    network.generation_config.eos_token_id = [tokenizer.convert_tokens_to_ids("<|im_end|>"), tokenizer.eos_token_id]
    network.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def logits(network, tokenizer, text="Who is mayor?"):
    network.eval()
    with torch.no_grad():
        return network(input_ids=torch.tensor([tokenizer(text).input_ids])).logits


def test_a_folder_in_the_layout_of_a_published_model_is_tuned_and_its_adapter_loads_with_peft(folder, tmp_path):
    learner = LanguageLearner(base_model=str(folder), tuning="lora", **LORA)
    untrained = learner.predict(asked(FIRST))
    assert all(isinstance(text, str) for said in untrained for text in said), "a model with a name answers untrained"
    assert learner.template.tokenizer.chat_template == CHATML
    assert set(learner.template.stops) == {
        learner.template.tokenizer.eos_token_id,
        learner.template.tokenizer.convert_tokens_to_ids("<|im_end|>"),
    }
    taught(learner, (FIRST,))
    assert all("lora_" in name for name in learner.weights)
    path = learner.save(tmp_path / "model")
    base = AutoModelForCausalLM.from_pretrained(folder)
    before = logits(base, learner.template.tokenizer)
    loaded = PeftModel.from_pretrained(base, path / "adapter")
    tokenizer = AutoTokenizer.from_pretrained(path / "tokenizer")
    assert torch.equal(logits(loaded, tokenizer), logits(learner.network, tokenizer))
    assert not torch.equal(logits(loaded, tokenizer), before)
    assert not (path / "model").exists(), "the base model is not copied into every round"


@pytest.mark.parametrize(
    ("tiny", "tuning"),
    [
        *((True, "full"), (True, "lora"), (False, "moelora")),
        *(slow(*each) for each in ((True, "moelora"), (False, "full"), (False, "lora"))),
    ],
)
def test_what_was_saved_goes_on_bit_for_bit(folder, tmp_path, tiny, tuning):
    options = {**SIZE, **LORA, "experts": 2, "tuning": tuning, "lora_dropout": 0.1}
    options["base_model"] = "tiny" if tiny else str(folder)
    begun = taught(LanguageLearner(**options), (FIRST,))
    path = begun.save(tmp_path / "model")
    resumed = LanguageLearner(**options)
    resumed.load(path)
    for learner in (begun, resumed):
        taught(learner, (SECOND,), first=2)
    left, right = begun.network.state_dict(), resumed.network.state_dict()
    assert left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
    assert begun.predict(asked(SECOND)) == resumed.predict(asked(SECOND))


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_what_ends_a_reply_is_the_same_after_loading(folder, tmp_path, tuning):
    shutil.copytree(folder, tmp_path / "base")
    settings = GenerationConfig.from_pretrained(folder)
    settings.eos_token_id = [*settings.eos_token_id, 7]  # known to nothing but the model's own settings
    settings.save_pretrained(tmp_path / "base")
    begun = taught(LanguageLearner(base_model=str(tmp_path / "base"), tuning=tuning, **LORA), (FIRST,))
    resumed = LanguageLearner(base_model=str(tmp_path / "base"), tuning=tuning, **LORA)
    resumed.load(begun.save(tmp_path / "model"))
    assert 7 in begun.template.stops and resumed.template.stops == begun.template.stops


def test_only_the_adapter_is_tuned(folder):
    learner = LanguageLearner(base_model=str(folder), tuning="lora", **LORA)
    learner.predict(asked(FIRST))
    before = {name: p.detach().clone() for name, p in learner.network.named_parameters()}
    taught(learner, (FIRST,))
    changed = {name for name, p in learner.network.named_parameters() if not torch.equal(p, before[name])}
    assert changed and changed <= set(learner.weights)


def test_a_tiny_base_under_an_adapter_is_kept_as_it_was(tmp_path):
    learner = taught(LanguageLearner(**SIZE, tuning="lora", lora_r=4), (FIRST,))
    path = learner.save(tmp_path / "model")
    loaded = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(path / "model"), path / "adapter")
    tokenizer = learner.template.tokenizer
    assert torch.equal(logits(loaded, tokenizer), logits(learner.network, tokenizer))


def test_moelora_is_the_sum_over_experts_that_is_written():
    torch.manual_seed(0)
    base = torch.nn.Linear(5, 7)
    config = LoraConfig(r=6, lora_alpha=12, target_modules=["any"])
    layer = MoELoraLinear(base, "default", experts=3, config=config, r=6, lora_alpha=12)
    torch.nn.init.normal_(layer.lora_B["default"].weight)
    x = torch.randn(2, 4, 5)
    A, B = layer.lora_A["default"].weight, layer.lora_B["default"].weight  # (6, 5), (7, 6)
    router = torch.softmax(x @ layer.lora_router["default"].weight.T, dim=-1)  # (2, 4, 3)
    expected = base(x)
    for e in range(3):
        rows = slice(2 * e, 2 * e + 2)
        expected = expected + 12 / 6 * router[..., e : e + 1] * (x @ A[rows].T @ B[:, rows].T)
    torch.testing.assert_close(layer(x), expected)


def test_a_moelora_adapter_loads_with_peft(folder, tmp_path):
    learner = taught(MoELoRA(base_model=str(folder), experts=2, **LORA), (FIRST,))
    assert {name.split(".")[-3] for name in learner.weights} == {"lora_A", "lora_B", "lora_router"}
    path = learner.save(tmp_path / "model")
    config = with_experts(LoraConfig.from_pretrained(path / "adapter"), 2)
    loaded = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder), path / "adapter", config=config)
    tokenizer = learner.template.tokenizer
    assert torch.equal(logits(loaded, tokenizer), logits(learner.network, tokenizer))


def test_a_model_that_is_not_there_is_refused_with_the_remedies_and_without_the_network():
    learner = LanguageLearner(base_model="nobody/no-such-model", tuning="lora")
    assert errors_of(learner.predict, asked(FIRST)) == [("unreadable-file", "")]


def test_a_path_that_leads_nowhere_is_told_with_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert errors_of(lambda: LanguageLearner(base_model="./mine").predict(asked(FIRST))) == [("missing-file", "")]
    (tmp_path / "mine").mkdir()
    assert errors_of(lambda: LanguageLearner(base_model="./mine").predict(asked(FIRST))) == [("missing-file", "")]
    (tmp_path / "mine" / "config.json").write_text("{}")
    assert errors_of(lambda: LanguageLearner(base_model="./mine").predict(asked(FIRST))) == [("unreadable-file", "")]


def test_without_peft_the_remedy_is_told_before_anything_is_loaded(monkeypatch):
    where = "ianvs.testalgorithms.language.model_places.find_spec"
    monkeypatch.setattr(where, lambda name: None if name == "peft" else name)
    LanguageLearner(tuning="full")
    assert errors_of(LanguageLearner, tuning="lora") == [("missing-package", "")]


def test_the_tokens_of_a_tiny_model_come_from_the_first_round_alone():
    learner = taught(LanguageLearner(**SIZE), (FIRST, SECOND))
    alone = taught(LanguageLearner(**SIZE), (FIRST,))
    assert learner.template.tokenizer.get_vocab() == alone.template.tokenizer.get_vocab()


def test_the_learning_rate_rises_in_a_line_and_falls_in_half_a_cosine():
    shares = [warm_cosine(10, 2, step) for step in range(10)]
    assert shares[:3] == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]
    assert shares[6] == pytest.approx(0.5)
    assert min(shares) > 0


# --- memory -----------------------------------------------------------------------------------------------------------


def test_a_model_that_accelerate_shares_out_learns_and_goes_on_with_the_same_bits(folder, tmp_path):
    pytest.importorskip("accelerate")
    learners = [
        LanguageLearner(base_model=str(folder), tuning="lora", device_map=where, **LORA) for where in (None, "auto")
    ]
    for learner in learners:
        taught(learner, (FIRST,))
    assert loading(learners[1].options) == {"device_map": "auto"} and loading(learners[0].options) == {}
    resumed = LanguageLearner(base_model=str(folder), tuning="lora", device_map="auto", **LORA)
    resumed.load(learners[1].save(tmp_path / "model"))
    for learner in (*learners, resumed):
        taught(learner, (SECOND,), first=2)
    plain, placed, again = (learner.network.state_dict() for learner in (*learners, resumed))
    if not torch.cuda.is_available():
        assert all(torch.equal(plain[name], weight) for name, weight in placed.items())
    assert all(torch.equal(placed[name], weight) for name, weight in again.items())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"quantize": "8bit"}, "invalid-choice"),
        ({"quantize": "4bit", "tuning": "full"}, "conflicting-keys"),
        ({"quantize": "4bit", "base_model": "tiny"}, "conflicting-keys"),
        ({"device_map": "automatic"}, "invalid-choice"),
        ({"device_map": "auto", "base_model": "tiny"}, "conflicting-keys"),
    ],
)
def test_loading_that_is_asked_for_wrongly_is_told(folder, options, code):
    assert errors_of(LanguageLearner, **{"base_model": str(folder), "tuning": "lora", **options}) == [(code, "")]


def test_four_bits_without_the_package_or_without_a_card_are_told(folder, monkeypatch):
    from ianvs.testalgorithms.language import model_places as module

    options = {"base_model": str(folder), "tuning": "lora", "quantize": "4bit"}
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "bitsandbytes" else object())
    assert errors_of(LanguageLearner, **options) == [("missing-package", "")]
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    learner = LanguageLearner(**options)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert errors_of(learner.check_exam) == [("conflicting-keys", "")]


@pytest.mark.gpu
def test_four_bits_learn_and_go_on_from_their_files(folder, tmp_path):
    pytest.importorskip("bitsandbytes")
    options = {"base_model": str(folder), "tuning": "lora", "quantize": "4bit", **LORA}
    learner = LanguageLearner(**options)
    learner.train(FIRST, None, round=1, seed=0, device="cuda")
    resumed = LanguageLearner(**options)
    resumed.load(learner.save(tmp_path / "model"))
    assert resumed.predict(asked(SECOND), device="cuda") == learner.predict(asked(SECOND), device="cuda")
