"""Variables in paths, where paths are looked for, and names of secrets."""

import sys
from pathlib import Path

import pytest

from ianvs.base.secrets import HIDDEN, hide_secrets, is_secret, without_secrets
from ianvs.config.paths import Lookup, expand, neighbour
from tests.errors import errors_of


def test_variables_are_taken_from_the_environment_that_is_given():
    assert expand("${A}/x/${B:-c}", {"A": "/data"}) == "/data/x/c"
    assert expand("${B:-c}", {"B": "b"}) == "b"
    assert expand("${B:-c}", {"B": ""}) == "c"
    assert expand("$A and {A}", {"A": "/data"}) == "$A and {A}"


@pytest.mark.parametrize(("there", "written"), [("algos/nm.py", "nm.py"), ("nm.py", "algos/nm.py")])
def test_a_file_one_folder_away_is_proposed(tmp_path: Path, there: str, written: str) -> None:
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("")
    assert neighbour([tmp_path / written]) == f" Did you mean '{there}'?"


@pytest.mark.parametrize(("text", "code"), [("${A}", "unset-variable"), ("x/${A", "invalid-variable")])
def test_a_variable_that_is_not_there_is_refused(text, code):
    assert errors_of(expand, text, {}) == [(code, "")]


def test_a_path_is_looked_for_beside_the_file_first_then_in_the_working_directory(tmp_path):
    beside, here = tmp_path / "beside", tmp_path / "here"
    beside.mkdir()
    here.mkdir()
    lookup = Lookup(beside, here, {})
    (here / "a.txt").touch()
    assert lookup.find("./a.txt") == here / "a.txt"
    (beside / "a.txt").touch()
    assert lookup.find("./a.txt") == beside / "a.txt"
    assert lookup.find("../here/a.txt") == here / "a.txt"
    assert lookup.find(str(here / "a.txt")) == here / "a.txt"


def test_a_missing_path_names_every_place_that_was_looked_at(tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "train.txt").touch()
    lookup = Lookup(tmp_path / "beside", tmp_path / "here", {})
    assert errors_of(lookup.find, "trian.txt") == [("missing-file", "")]


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "x" * 5000])
def test_a_path_that_can_not_be_one_is_an_error_like_any_other(text):
    with pytest.raises(ValueError):
        Lookup(Path.cwd(), Path.cwd(), {}).find(text)


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "api_key",
        "apiKey",
        "APIKey",
        "OPENAI_API_KEY",
        "hfToken",
        "access-token",
        "db.password",
        "passwd",
        "client_secret",
        "aws_credentials",
        "apikey",
        "token2",
        "secret_max",
        "api_keys",
        "apikeys",
        "openaiApiKeys",
        "access_tokens",
        "tokens",
        "github_tokens",
        "hubKeys",
        "passphrase",
        "db_pwd",
        "bearer",
        "auth",
        "http_auth",
        "basicAuth",
        "github_pat",
        "sentry_dsn",
        "pass",
        "db_pass",
        "pw",
        "user_pw",
        "jwt",
        "cookie",
        "sessionCookie",
        "session",
        "session_id",
        "signature",
    ],
)
def test_a_secret_is_known_by_its_name(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "auth_mode",
        "RAY_AUTH_MODE",
        "session_type",
        "tokenizer",
        "keypoints",
        "max_tokens",
        "key_size",
        "num_key_value_heads",
        "monkey",
        "learning_rate",
        "token_dropout",
        "keyed",
        "keyDim",
        "pattern",
        "author",
        "path",
        "patience",
        "keys",
        "stop_tokens",
        "special_tokens",
        "passes",
        "pass_count",
        "forward_pass",
        "low_pass",
        "session_size",
        "num_sessions",
        "signature_dim",
        "bypass",
        "compass",
        "cook",
        "sk_learn",
    ],
)
def test_a_name_that_only_sounds_like_a_secret_is_shown(name):
    assert not is_secret(name)


def test_who_logs_in_at_a_url_is_never_shown():
    url = "postgres://me:sesame-open@db.example:5432/x?y=a@b"
    shown = without_secrets({"database": url, "all": [{"at": url}], "plain": "http://example.org/a@b"})
    masked = f"postgres://{HIDDEN}@db.example:5432/x?y=a@b"
    assert shown == {"database": masked, "all": [{"at": masked}], "plain": "http://example.org/a@b"}
    said = hide_secrets(f"no answer of {url}; tried sesame-open as password", {"database": url})
    assert said == f"no answer of {masked}; tried {HIDDEN} as password"


def test_the_variable_that_holds_a_secret_is_shown_and_a_default_beside_it_is_not():
    given = {"api_key": "${KEY}", "token": "${TOKEN:-sesame}", "passwords": ["${A}", "${B}"], "pat": ["${A}", "x"]}
    assert without_secrets(given) == {
        "api_key": "${KEY}",
        "token": "${TOKEN}",
        "passwords": ["${A}", "${B}"],
        "pat": HIDDEN,
    }
    assert hide_secrets("${KEY} is not set", given) == "${KEY} is not set"


def test_an_interpreter_is_named_by_a_variable_like_any_path(files):
    files.change("algorithm.yaml", "  modules:", "  python: ${MY_PYTHON}\n  modules:")
    [algorithm] = files.load(environment={"MY_PYTHON": sys.executable}).algorithms
    assert algorithm.python == Path(sys.executable)
    files.change("algorithm.yaml", "${MY_PYTHON}", f"${{UNSET:-{sys.executable}}}")
    [algorithm] = files.load().algorithms
    assert algorithm.python == Path(sys.executable)
