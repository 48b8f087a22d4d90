"""What looks like a secret, what does not, and in which forms a known one is found."""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ianvs.base.secrets import HIDDEN, hide_secrets, secrets_of, without_secret, without_secrets
from ianvs.processes.engines.capped_log import CappedLog

BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\nAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R\nAB=="
WANDB = "0123456789abcdef0123456789abcdef01234567"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"
TOKENS = [
    "ghp_abcdefghij0123456789abcdefghij012345",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-abcdefghij0123456789",
    "sk-abc123def456ghi789jkl",
    "sk-proj-Ab12Cd34Ef56Gh78Ij90_kl-mn",
    "sk-ant-api03-AAAAbbbbCCCC1234-xyz",
    "sk_live_abcdefghij0123456789",
    "xoxb-123456789012-1234567890123-AbCdEfGhIjKl",
    "xoxp-123456789012-abcdefghijk",
    "xapp-1-A0123456789-123456789012-0a1b2c3d",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "AKIAIOSFODNN7EXAMPLE",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    PEM,
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("around", ["{}", "Bearer {}", "'{}'", '{{"a": "{}"}}', "key={}\n", "(see {}).", "\\n{}\\n"])
def test_a_token_is_known_by_its_looks_wherever_it_stands(token: str, around: str) -> None:
    for written in (token, json.dumps(token)[1:-1], repr(token)[1:-1]):
        said = hide_secrets(around.format(written))
        assert said == around.format(HIDDEN)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://h/x?a=1&token=sesame&b=2", "https://h/x?a=1&token=***&b=2"),
        ("https://h/#access_token=sesame", "https://h/#access_token=***"),
        ("https://h/?X-Amz-Signature=0ab&amp;sig=cd", "https://h/?X-Amz-Signature=***&amp;sig=***"),
        ("redis://:sesame@h:6379/0", "redis://***@h:6379/0"),
        ("Server=h;Uid=me;Pwd=sesame;Db=x", "Server=h;Uid=me;Pwd=***;Db=x"),
        ("Server=h;PASSWORD = 'open sesame';Db=x", "Server=h;PASSWORD = '***';Db=x"),
        ("AccountKey=abc+/def==;EndpointSuffix=x", "AccountKey=***;EndpointSuffix=x"),
        ("Authorization: Basic bWU6c2VzYW1lMTIz", "Authorization: Basic ***"),
        (f"cut off: {PEM[:60]}", f"cut off: {HIDDEN}"),
        (f"wandb: {WANDB}", "wandb: ***"),
        (f"WANDB_API_KEY={WANDB}", "WANDB_API_KEY=***"),
    ],
)
def test_a_secret_is_hidden_where_it_stands_in_a_longer_text(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    assert without_secrets({"where": [{"at": text}]}) == {"where": [{"at": shown}]}


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn",
        "sk-learn-contrib-0.24",
        "skip-connection",
        "task-aware-learning-2020abcdefgh",
        "disk-0123456789abcdef",
        "hf_model_v2_large",
        "ghp_",
        "eyJ",
        "asia",
        "Bearer authentication is needed",
        "connect(password=None)",
        "PWD=/home/me",
        "sorted(names, key=len)",
        "https://h/x?max_tokens=5&page=2",
        "http://example.org/a@b",
        f"commit {WANDB}",
        "wandb: Currently logged in as: somebody",
        "--- BEGIN ---",
        "a token is a part of a word, a pass is one over the data",
        "api_key_env",
        "no module named 'tokenizers'",
    ],
)
def test_what_only_resembles_a_secret_is_shown(text: str) -> None:
    assert hide_secrets(text) == text


@pytest.mark.parametrize(
    "given",
    [
        {"session_size": 3, "pass_count": 2, "tokens": 5, "token": 7, "key": 0.5, "pass": [1, 2]},
        {"auth": True, "password": None, "signature": False},
        {"api_key_env": "OPENAI_API_KEY", "token_variable": "MY_TOKEN"},
        {"block": "skip-connection", "library": "sk-learn", "loss": "cross-entropy"},
        {"wandb": "offline", "wandb_project": "continual-2024-class-incremental", "hf": "org/model-7b-instruct-v0.2"},
        {"keys": ["query", "value"], "special_tokens": ["<s>", "</s>"], "max_tokens": "512"},
    ],
)
def test_numbers_truth_values_and_names_of_variables_are_no_secrets(given: dict[str, object]) -> None:
    assert without_secrets(given) == given
    assert not secrets_of(given)


def test_what_is_no_name_of_a_variable_is_hidden_under_the_name_of_one() -> None:
    assert without_secrets({"api_key_env": "sesame-open"}) == {"api_key_env": HIDDEN}
    assert without_secrets({"api_key_env": "AKIAIOSFODNN7EXAMPLE"}) == {"api_key_env": HIDDEN}


@pytest.mark.parametrize(
    "given", [{"tokens": ["sesame-1", "sesame-2"]}, {"wandb": WANDB}, {"slack": "a1-b2-c3-d4-e5-f6-g7"}]
)
def test_plural_names_and_those_of_services_hide_their_keys(given: dict[str, object]) -> None:
    [(name, value)] = given.items()
    assert without_secrets(given) == {name: HIDDEN}
    values = value if isinstance(value, list) else [value]
    assert hide_secrets(" ".join(map(str, values)), given) == " ".join([HIDDEN] * len(values))


def test_a_password_may_be_a_number() -> None:
    assert without_secrets({"password": 12345678}) == {"password": HIDDEN}
    assert hide_secrets("not 12345678", {"password": 12345678}) == "not ***"


def test_secrets_are_found_however_deep_they_are_nested() -> None:
    deep = {"a": [[{"b": ({"api_key": "sesame-1"},)}], {"auth": {"x": ["sesame-2"]}}], "c": {"pw": "sesame-3"}}
    headers = {"headers": [{"name": "Cookie", "value": "sesame-4"}, {"name": "Accept", "value": "text/html"}]}
    assert "sesame" not in json.dumps(without_secrets({**deep, **headers}))
    assert "text/html" in json.dumps(without_secrets(headers))
    assert secrets_of(deep, headers) == {"sesame-1", "sesame-2", "sesame-3", "sesame-4"}


def test_variables_of_the_environment_and_those_that_a_file_names() -> None:
    environment = {
        "OPENAI_API_KEY": "sesame-1",
        "MINE": "sesame-2",
        "DESKTOP_SESSION": "plasma",
        "SSH_AUTH_SOCK": "/tmp/agent.1",
        "HOME": "/root",
    }
    named = {"more": [{"api_key_env": "MINE"}]}
    assert secrets_of(named, environment=environment) == {"sesame-1", "sesame-2"}
    text = "sesame-1 sesame-2 plasma /tmp/agent.1 /root"
    assert hide_secrets(text, named, environment=environment) == "*** *** plasma /tmp/agent.1 /root"


def test_of_a_word_of_the_command_line_a_value_is_hidden_by_its_name() -> None:
    assert without_secret("ewc.api_key=sesame") == "ewc.api_key=***"
    assert without_secret("ewc.tokens=sk-abc123def456ghi789jkl") == "ewc.tokens=***"
    assert without_secret("seeds=[0, 1]") == "seeds=[0, 1]"


SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=8, max_size=60)
FORMS = {
    "plain": lambda secret: secret,
    "repr": lambda secret: repr({"key": secret}),
    "json": lambda secret: json.dumps([secret]),
    "json as it is": lambda secret: json.dumps([secret], ensure_ascii=False),
    "url": lambda secret: f"https://example.org/{quote(secret)}",
    "url, all": lambda secret: f"https://example.org/{quote(secret, safe='')}",
    "form": lambda secret: f"x={quote_plus(secret)}",
    "base 64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base 64 for urls": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
}


@given(SECRETS, st.sampled_from(sorted(FORMS)))
def test_a_known_secret_is_hidden_in_every_form(secret: str, form: str) -> None:
    assume(secret.strip() == secret and len(set(secret)) > 3)
    text = FORMS[form](secret)
    written = FORMS[form]("").strip("[]{}\"'")
    said = hide_secrets(text, {"api_key": secret})
    assert HIDDEN in said
    assert secret not in said
    assert len(said) <= len(written) + 20


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_key_of_several_lines_leaves_no_line_in_any_form(form: str) -> None:
    odd = PEM.replace("-----BEGIN", "=====BEGIN")  # known by its name alone
    said = hide_secrets(FORMS[form](FORMS["repr"](odd) if form != "plain" else odd), {"private_key": odd})
    if not form.startswith("base"):  # of a repr in base 64 nobody knows anything
        assert not [line for line in BODY.split()[:2] if line in said]


@given(st.data())
def test_a_log_has_no_secret_wherever_its_blocks_end(data: st.DataObject) -> None:
    known = ["open-sesame", "of\nsome\nshort\nlines-here"]
    token = f" {TOKENS[0]} "
    parts = ["epoch 1: 0.5\n", *known, token, PEM + "\n", "https://u:pw@h/x ", "é\r", " ", "\n"]
    text = "".join(data.draw(st.lists(st.sampled_from(parts), max_size=12))).encode()
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    blocks = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    whole = _written([text], known)[-1]
    assert _written(blocks, known)[-1] == whole
    assert not [secret for secret in ("sesame", "lines-here", "0123456789", "MIIE", "u:pw") if secret.encode() in whole]
    assert whole.count(b"epoch 1: 0.5") == text.count(b"epoch 1: 0.5")


def test_whole_lines_of_a_log_are_written_at_once_and_no_byte_is_lost() -> None:
    blocks = [b"10 %\r20 %\r", b"\xff\xfe is no text\nhalf a ", b"line\n", b"x" * 10_000]
    *before, last = _written(blocks, ["open-sesame"])
    lines = blocks[0], blocks[0] + b"\xff\xfe is no text\n", b"".join(blocks[:3])
    assert before == [*lines, lines[2] + b"x" * (10_000 - 4096)]
    assert last == b"".join(blocks)


def _written(blocks: list[bytes], secrets: list[str]) -> list[bytes]:
    """The log's file after each block, and at the end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "log")
        log, contents = CappedLog(file, secrets), []
        for block in blocks:
            log.write(block)
            contents.append(file.read_bytes())
        log.write(b"", last=True)
        return [*contents, file.read_bytes()]
