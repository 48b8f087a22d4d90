"""Base models that are a GGUF file: a small one that is written here, and SmolLM2 that a package carries."""

import json

import numpy as np
import pytest
import torch

pytest.importorskip("gguf")
pytest.importorskip("transformers")
pytest.importorskip("peft")

import gguf
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ianvs.testalgorithms.language import LanguageLearner, model_places
from ianvs.testalgorithms.language.tiny import tiny_tokenizer
from tests.errors import errors_of
from tests.packages import install
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, asked, taught

HEADS, WIDTH, LAYERS = 2, 32, 2
CHATML = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
LORA = {"tuning": "lora", "lora_r": 4, "max_new_tokens": 8, "batch_size": 3, "epochs": 2}


def interleaved(weight):
    """The rows of q and k as llama.cpp has them: the two halves that a position turns lie beside each other."""
    rows, columns = weight.shape
    return weight.reshape(HEADS, 2, rows // HEADS // 2, columns).swapaxes(1, 2).reshape(rows, columns)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(a Llama, its tokenizer, the GGUF file that holds both, in 32 bits)."""
    tokenizer = tiny_tokenizer(["Who is mayor? Ada Berg. It is 2022. Where was the fair?"], 300)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=WIDTH, intermediate_size=64, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=256, tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    network = LlamaForCausalLM(config).eval()
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(64)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(len(tokenizer))
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    special = set(tokenizer.all_special_tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_chat_template(CHATML)
    names = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    }  # fmt: skip
    state = {name: weight.numpy() for name, weight in network.state_dict().items()}
    for theirs, ours in (("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")):
        writer.add_tensor(f"{ours}.weight", state[f"{theirs}.weight"])
    for layer in range(LAYERS):
        for theirs, ours in names.items():
            weight = state[f"model.layers.{layer}.{theirs}.weight"]
            turned = interleaved(weight) if ours in ("attn_q", "attn_k") else weight
            writer.add_tensor(f"blk.{layer}.{ours}.weight", np.ascontiguousarray(turned))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return network, tokenizer, path


def said(network, tokenizer, text="Who is mayor?"):
    network.eval()
    with torch.no_grad():
        return network(input_ids=torch.tensor([tokenizer(text, add_special_tokens=False).input_ids])).logits


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_gguf_file_is_the_model_that_was_written_with_its_tokenizer_and_template(made, as_folder):
    network, tokenizer, path = made
    learner = LanguageLearner(base_model=str(path.parent if as_folder else path), **LORA)
    replies = learner.predict(asked(FIRST))
    assert all(isinstance(text, str) for turns in replies for text in turns)
    ours = learner.template.tokenizer
    assert ours.chat_template == CHATML and ours.eos_token == tokenizer.eos_token
    for text in ("Who is mayor?", "<|user|>Ada  Berg, é<|end|>"):
        assert ours(text, add_special_tokens=False).input_ids == tokenizer(text, add_special_tokens=False).input_ids
    torch.testing.assert_close(said(learner.network, ours), said(network, tokenizer))


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_what_was_tuned_from_a_gguf_file_goes_on_bit_for_bit_and_loads_without_ianvs(made, tmp_path, tuning):
    options = {**LORA, "tuning": tuning, "base_model": str(made[2])}
    begun = taught(LanguageLearner(**options), (FIRST,))
    path = begun.save(tmp_path / "model")
    resumed = LanguageLearner(**options)
    resumed.load(path)
    tokenizer = AutoTokenizer.from_pretrained(path / "tokenizer")
    if tuning == "full":
        loaded = AutoModelForCausalLM.from_pretrained(path / "model")
    else:
        base = AutoModelForCausalLM.from_pretrained(made[2].parent, gguf_file=made[2].name)
        loaded = PeftModel.from_pretrained(base, path / "adapter")
    assert torch.equal(said(loaded, tokenizer), said(begun.network, begun.template.tokenizer))
    for learner in (begun, resumed):
        taught(learner, (SECOND,), first=2)
    left, right = begun.network.state_dict(), resumed.network.state_dict()
    assert left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_a_package_that_carries_a_gguf_file_is_found_by_its_name(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    install(tmp_path / "installed", monkeypatch, "small_model", "", "")
    learner = LanguageLearner(base_model=str(made[2]), **LORA)
    learner.predict(asked(FIRST))
    wanted = said(learner.network, learner.template.tokenizer)
    home = tmp_path / "installed"
    assert errors_of(LanguageLearner, base_model="small_model", **LORA) == [("unreadable-file", "")]
    (home / "small.gguf").write_bytes(made[2].read_bytes())
    [info] = home.glob("*.dist-info")
    with (info / "RECORD").open("a") as record:
        record.write("small.gguf,,\n")
    packaged = LanguageLearner(base_model="small_model", **LORA)
    packaged.predict(asked(FIRST))
    assert torch.equal(said(packaged.network, packaged.template.tokenizer), wanted)


def test_unknown_target_modules_of_a_gguf_file_are_told_before_the_weights_are_read(made):
    learner = LanguageLearner(base_model=str(made[2]), **{**LORA, "target_modules": ["q_prj"]})
    assert errors_of(learner.check_exam) == [("invalid-choice", "")]


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (None, "gone.gguf", "missing-file"),
        (b"GGUX" + bytes(64), "broken.gguf", "unreadable-file"),
        (b"{}", "model.bin", "unreadable-file"),
    ],
)
def test_what_is_no_gguf_file_is_told(tmp_path, content, name, code):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert errors_of(
        lambda: LanguageLearner(base_model=str(tmp_path / name), **{**LORA, "target_modules": ["q_proj"]}).check_exam()
    ) == [(code, "")]


def test_a_folder_with_two_gguf_files_is_told(made, tmp_path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"")
    assert errors_of(LanguageLearner, base_model=str(tmp_path), **LORA) == [("unreadable-file", "")]


def test_gguf_without_the_package_that_reads_it_is_told(made, monkeypatch):
    lacking = {"gguf", "accelerate"}
    monkeypatch.setattr(model_places, "find_spec", lambda name: None if name in lacking else object())
    assert errors_of(LanguageLearner, base_model=str(made[2]), **LORA) == [("missing-package", "")]
