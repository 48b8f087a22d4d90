"""Folders of models as people have them: what is missing, what does not fit, and what is tuned of them."""

import json
import shutil

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("peft")

from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BertConfig,
    GptOssConfig,
    MambaConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen2MoeConfig,
    RwkvConfig,
    T5Config,
)

from ianvs.testalgorithms.language import LanguageLearner
from tests.errors import errors_of
from tests.marks import slow
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, asked, taught
from tests.unit.testalgorithms.tiny_folders import SIZES, write

LORA = {"tuning": "lora", "lora_r": 2, "lora_alpha": 4, "max_new_tokens": 6, "batch_size": 3, "epochs": 2}
MOE = {**SIZES, "num_experts": 4, "num_experts_per_tok": 2}
CONFIGS = {
    "qwen2": (Qwen2Config, SIZES),
    "qwen2_moe": (Qwen2MoeConfig, {**MOE, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 32}),
    "mixtral": (MixtralConfig, {**SIZES, "num_local_experts": 4}),
    "gpt_oss": (GptOssConfig, {**SIZES, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "mamba": (MambaConfig, {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}),
    "bert": (BertConfig, {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}),
    "rwkv": (RwkvConfig, {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place, made = tmp_path_factory.mktemp("models"), {}

    def folder(name):
        if name not in made:
            made[name] = write(place / name, CONFIGS[name])
        return made[name]

    return folder


@pytest.fixture
def broken(folders, tmp_path):
    """A copy of a folder that a test may spoil."""
    return shutil.copytree(folders("qwen2"), tmp_path / "qwen2")


def refused(folder, **options):
    """What validate and the first round say of it; they are to be one."""
    made = {"base_model": str(folder), **LORA, **options}
    found = errors_of(LanguageLearner(**made).check_exam)
    assert errors_of(lambda: taught(LanguageLearner(**made), (FIRST,))) == found
    return found


# --- weights that are not there ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_weights_that_the_files_lack_are_an_error_and_not_drawn(broken, tuning):
    weights = load_file(broken / "model.safetensors")
    assert weights.pop("model.layers.1.self_attn.q_proj.weight") is not None
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    assert refused(broken, tuning=tuning) == [("unreadable-file", "")]


def test_weights_of_another_shape_are_an_error(broken):
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    assert refused(broken) == [("unreadable-file", "")]


def test_tied_weights_are_not_missing(tmp_path):
    path = write(tmp_path / "tied", (Qwen2Config, {**SIZES, "tie_word_embeddings": True}))
    assert "lm_head.weight" not in load_file(path / "model.safetensors")
    assert LanguageLearner(base_model=str(path), **LORA).check_exam() == ""


def test_what_a_round_has_saved_is_read_whole_or_not_at_all(folders, tmp_path):
    options = {**LORA, "base_model": str(folders("qwen2")), "tuning": "full"}
    path = taught(LanguageLearner(**options), (FIRST,)).save(tmp_path / "saved")
    weights = load_file(path / "model" / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, path / "model" / "model.safetensors", {"format": "pt"})
    assert errors_of(LanguageLearner(**options).load, path) == [("unreadable-file", "")]


# --- what validate sees without weights -------------------------------------------------------------------------------


def test_a_shard_that_is_not_there_is_told(tmp_path):
    path = write(tmp_path / "shards", CONFIGS["qwen2"], max_shard_size="30KB")
    shards = sorted(path.glob("model-*.safetensors"))
    assert len(shards) > 1
    shards[-1].unlink()
    assert refused(path) == [("unreadable-file", "")]


def test_a_file_that_was_cut_off_is_told(broken):
    whole = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    assert refused(broken) == [("unreadable-file", "")]


@pytest.mark.parametrize("method", ["gptq", "awq", "bitsandbytes"])
def test_a_quantized_model_whose_package_is_not_installed_is_told(broken, method):
    config = json.loads((broken / "config.json").read_text())
    more = {"bits": 4, "group_size": 32} if method != "bitsandbytes" else {"load_in_4bit": True}
    (broken / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": method, **more}}))
    learner = LanguageLearner(base_model=str(broken), **LORA)
    [(code, _)] = errors_of(learner.check_exam)
    assert code == "unreadable-file"


@pytest.mark.parametrize("kind", ["llava_next", "qwen2_audio"])
def test_a_model_that_sees_or_hears_in_another_way_is_refused_with_words(tmp_path, kind):
    from transformers import AutoConfig

    AutoConfig.for_model(kind).save_pretrained(tmp_path)
    assert errors_of(LanguageLearner(base_model=str(tmp_path), **LORA).check_exam) == [("refused-arguments", "")]


def test_a_model_that_sees_later_tokens_is_no_language_model(folders):
    assert errors_of(LanguageLearner(base_model=str(folders("bert")), **LORA).check_exam) == [("refused-arguments", "")]


def test_a_model_that_looks_at_padding_replies_to_one_at_a_time(folders):
    options = {**LORA, "base_model": str(folders("rwkv")), "tuning": "full"}
    assert errors_of(LanguageLearner(**options).check_exam) == [("refused-arguments", "")]
    assert LanguageLearner(**options, generation_batch=1).check_exam() == ""


@pytest.mark.parametrize("name", ["qwen2", "qwen2_moe", "mixtral", "gpt_oss", "mamba"])
def test_models_that_do_neither_pass(folders, name):
    batch = {"generation_batch": 1} if name == "mamba" else {}
    assert LanguageLearner(base_model=str(folders(name)), **LORA, **batch).check_exam() == ""


def test_a_large_model_is_probed_by_a_copy_of_a_few_layers(folders, monkeypatch):
    from ianvs.testalgorithms.language import model_check

    monkeypatch.setattr(model_check, "_SMALL", 100)
    model_check._copy.cache_clear()
    assert LanguageLearner(base_model=str(folders("qwen2_moe")), **LORA).check_exam() == ""
    assert errors_of(LanguageLearner(base_model=str(folders("bert")), **LORA).check_exam) == [("refused-arguments", "")]
    model_check._copy.cache_clear()


# --- adapters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["qwen2_moe", *map(slow, ("mixtral", "gpt_oss", "mamba"))])
def test_all_linear_tunes_experts_and_what_it_saved_goes_on_bit_for_bit(folders, tmp_path, name):
    options = {**LORA, "base_model": str(folders(name)), "generation_batch": 1}
    begun = taught(LanguageLearner(**options), (FIRST,))
    if name != "mamba":
        assert any(".experts." in weight for weight in begun.weights)
    resumed = LanguageLearner(**options)
    resumed.load(begun.save(tmp_path / "model"))
    for learner in (begun, resumed):
        taught(learner, (SECOND,), first=2)
    left, right = begun.network.state_dict(), resumed.network.state_dict()
    assert left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
    assert begun.predict(asked(SECOND)) == resumed.predict(asked(SECOND))
    loaded = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(folders(name)), tmp_path / "model" / "adapter"
    )
    tokens = torch.arange(9)[None]
    again = LanguageLearner(**options)
    again.load(tmp_path / "model")
    with torch.no_grad():
        assert torch.equal(loaded.eval()(input_ids=tokens).logits, again.network.eval()(input_ids=tokens).logits)


def test_how_many_weights_are_under_an_adapter_is_told_in_the_row(folders):
    plain = AutoModelForCausalLM.from_pretrained(folders("qwen2_moe"))
    whole = sum(p.numel() for p in plain.parameters())
    experts = sum(p.numel() for name, p in plain.named_parameters() if ".experts." in name)
    linear = sum(
        m.weight.numel() for n, m in plain.named_modules() if isinstance(m, torch.nn.Linear) and n != "lm_head"
    )
    for options, under in (({}, linear + experts), ({"lora_dropout": 0.1}, linear)):
        learner = LanguageLearner(base_model=str(folders("qwen2_moe")), **LORA, **options)
        taught(learner, (FIRST,))
        assert learner.remark == f"{under:,} of {whole:,} weights are under an adapter".replace(",", " ")


def test_weights_that_are_no_modules_are_named_by_target_parameters(folders):
    options = {**LORA, "base_model": str(folders("gpt_oss")), "target_modules": ["q_proj"]}
    some = LanguageLearner(**options, target_parameters=["experts.down_proj"])
    assert some.check_exam() == ""
    taught(some, (FIRST,))
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in some.weights} == {"q_proj", "experts"}
    for wrong in (["experts.q"], ["down"]):
        assert errors_of(LanguageLearner(**options, target_parameters=wrong).check_exam) == [("invalid-choice", "")]
    assert errors_of(LanguageLearner, **options, target_parameters="experts.down_proj") == [("wrong-type", "")]


@pytest.mark.parametrize("targets", ["q_proj", "q_proj, v_proj", r".*\.(q|v)_proj"])
def test_a_text_names_modules_as_a_list_does(folders, targets):
    learner = LanguageLearner(base_model=str(folders("qwen2")), **LORA, target_modules=targets)
    assert learner.check_exam() == ""
    taught(learner, (FIRST,))
    ends = {name.split(".lora_")[0].rpartition(".")[2] for name in learner.weights}
    assert ends == ({"q_proj"} if targets == "q_proj" else {"q_proj", "v_proj"})


def test_a_module_that_is_not_there_is_told_with_the_nearest(folders):
    learner = LanguageLearner(base_model=str(folders("qwen2")), **LORA, target_modules="q_porj")
    assert errors_of(learner.check_exam) == [("invalid-choice", "")]


@pytest.mark.parametrize("switch", ["use_dora", "use_rslora"])
def test_the_switches_are_those_of_peft(folders, tmp_path, switch):
    options = {**LORA, "base_model": str(folders("qwen2")), switch: True}
    learner = taught(LanguageLearner(**options), (FIRST,))
    config = json.loads((learner.save(tmp_path / "m") / "adapter" / "adapter_config.json").read_text())
    assert config[switch] is True
    torch.manual_seed(0)
    plain = get_peft_model(
        AutoModelForCausalLM.from_pretrained(folders("qwen2")),
        LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=4, target_modules="all-linear", **{switch: True}),
    )
    learnt = {name: weight for name, weight in learner.network.state_dict().items() if "lora_" in name}
    assert learnt.keys() == {name for name in plain.state_dict() if "lora_" in name}
    plain.load_state_dict(learnt, strict=False)
    tokens = torch.arange(9)[None]
    with torch.no_grad():
        assert torch.equal(plain.eval()(input_ids=tokens).logits, learner.network.eval()(input_ids=tokens).logits)
    resumed = LanguageLearner(**options)
    resumed.load(tmp_path / "m")
    assert resumed.predict(asked(FIRST)) == learner.predict(asked(FIRST))
    assert errors_of(LanguageLearner, **{**options, "tuning": "full"}) == [("conflicting-keys", "")]


# --- an adapter as base model -----------------------------------------------------------------------------------------


def test_an_adapter_that_was_tuned_before_is_gone_on_from(folders, tmp_path):
    before = taught(LanguageLearner(base_model=str(folders("qwen2")), **{**LORA, "epochs": 8}), (FIRST,))
    adapter = before.save(tmp_path / "sft") / "adapter"
    learner = LanguageLearner(base_model=str(adapter), **LORA)
    assert learner.check_exam() == ""
    tokens = torch.arange(9)[None]
    learner.predict(asked(FIRST))
    with torch.no_grad():
        merged = learner.network.eval()(input_ids=tokens).logits
        torch.testing.assert_close(merged, before.network.eval()(input_ids=tokens).logits)
    taught(learner, (SECOND,))
    resumed = LanguageLearner(base_model=str(adapter), **LORA)
    resumed.load(learner.save(tmp_path / "next"))
    assert resumed.predict(asked(SECOND)) == learner.predict(asked(SECOND))


def test_what_an_adapter_lacks_is_told(folders, tmp_path):
    learner = taught(LanguageLearner(base_model=str(folders("qwen2")), **LORA), (FIRST,))
    adapter = learner.save(tmp_path / "sft") / "adapter"
    weights = load_file(adapter / "adapter_model.safetensors")
    weights.pop(next(iter(weights)))
    save_file(weights, adapter / "adapter_model.safetensors", {"format": "pt"})
    assert refused(adapter) == [("unreadable-file", "")]
    (adapter / "adapter_model.safetensors").unlink()
    assert errors_of(LanguageLearner, base_model=str(adapter), **LORA) == [("missing-file", "")]
    (adapter / "adapter_config.json").write_text("{}")
    assert errors_of(LanguageLearner, base_model=str(adapter), **LORA) == [("unreadable-file", "")]


# --- encoder-decoders -------------------------------------------------------------------------------------------------

T5 = (T5Config, {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0})


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return write(tmp_path_factory.mktemp("models") / "t5", T5, AutoModelForSeq2SeqLM)


@pytest.mark.parametrize(("tuning", "epochs"), [("full", 60), ("lora", 2)])
def test_an_encoder_decoder_learns_replies_and_goes_on_bit_for_bit(t5, tmp_path, tuning, epochs):
    options = {
        **LORA,
        "base_model": str(t5),
        "tuning": tuning,
        "learning_rate": 1e-2,
        "epochs": epochs,
        "max_new_tokens": 16,
    }
    begun = LanguageLearner(**options)
    assert begun.check_exam() == ""
    taught(begun, (FIRST,))
    if tuning == "full":
        assert begun.predict(asked(FIRST)) == list(FIRST.y)
    resumed = LanguageLearner(**options)
    resumed.load(begun.save(tmp_path / "model"))
    assert resumed.predict(asked(SECOND)) == begun.predict(asked(SECOND))
    assert resumed.teacher_forced(FIRST) == begun.teacher_forced(FIRST)


def test_its_loss_is_that_of_transformers(t5):
    learner = LanguageLearner(base_model=str(t5), **{**LORA, "tuning": "full"})
    learner.predict(asked(FIRST))
    encoded = learner.encode([*learner_conversations()])
    batch = learner.batch(encoded)
    with torch.no_grad():
        found = learner.loss(batch)
        labels = batch.replies.masked_fill(~batch.learnt, -100)
        wanted = learner.network(input_ids=batch.tokens, attention_mask=batch.seen, labels=labels).loss
    torch.testing.assert_close(found, wanted)
    right = [learner.teacher_forced(FIRST)[i][2] for i in range(len(FIRST.y))]
    torch.testing.assert_close(torch.tensor(-sum(right) / len(batch.targets)), found)


def learner_conversations():
    from ianvs.testalgorithms.language.conversation import conversations_of

    return conversations_of(FIRST.x, FIRST.y)
