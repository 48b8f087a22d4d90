"""Groups of instructions as the authors of CIA route them: a naive twin of their script, pair by pair."""

import random

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

pytest.importorskip("transformers")

from ianvs.testalgorithms.language.cia.basemodel import CIA
from ianvs.testalgorithms.language.grouping import Codebook
from tests.unit.testalgorithms.conversation_fixtures import SIZE, asked, talks, taught, weights_of

WORDS = ["answer", "with", "the", "letter", "choice", "single", "word", "box", "region", "question", "and", "in", "a"]


def texts(draw, count):
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 7))) for _ in range(count)]


def naive(new, group):
    """The mean over all pairs, each with vectors of its own; without a word that counts, equal strings are alike."""
    found = []
    for a in new:
        for b in group:
            try:
                two = TfidfVectorizer(stop_words="english").fit_transform([a, b])
            except ValueError:
                found.append(float(a == b))
                continue
            found.append(cosine_similarity(two[0:1], two[1:2])[0][0])
    return sum(found) / len(found)


def test_vectors_are_fitted_on_each_pair():
    draw = random.Random(1)
    for _ in range(15):
        groups = [list(dict.fromkeys(texts(draw, 4))) for _ in range(3)]
        new = list(dict.fromkeys(texts(draw, 4)))
        best, near = Codebook(0.9, groups, vectors="pair").match(new)
        wanted = [naive(new, group) for group in groups]
        assert near == pytest.approx(max(wanted)) and wanted[best] == pytest.approx(max(wanted))


def test_what_is_nearer_to_no_group_than_the_threshold_goes_to_the_newest():
    groups = [["answer with the letter"], ["box of the region"], ["short phrase"]]
    near, far = "answer with the letter", "weather tomorrow"
    book = Codebook(0.9, groups, vectors="pair", below="newest")
    assert book.route([near, far, "box of the region"]) == [0, 2, 1]
    assert Codebook(0.9, groups, vectors="pair").route([near, far]) == [0, 0]


def test_a_test_set_is_routed_as_a_whole():
    groups = [["answer with the letter"], ["box of the region"]]
    book = Codebook(0.3, groups, vectors="pair", below="newest")
    mixed = ["answer with the letter", "answer with a word", "box of the region"]
    assert book.route(mixed) == [0, 0, 1] and book.route(mixed, together=True) == [0, 0, 0]
    both = [np.mean([naive([text], group) for text in mixed]) for group in groups]
    assert int(np.argmax(both)) == 0


FIRST = talks(("Name the mayor.", [("Who?", "Ada Berg")]), ("Name the mayor.", [("Who is it?", "Ada Berg")]))
SECOND = talks(("What is the price of bread?", [("How much?", "two cents")]))


@pytest.mark.parametrize(("options", "same"), [({}, True), ({"new_group": "fresh"}, False)])
def test_the_preset_coin_goes_on_from_the_weights_of_the_group_before(options, same):
    learner = taught(CIA(**SIZE, grouping="tfidf", **options), (FIRST,))
    before = weights_of(learner)
    seen = {}
    plain = learner.descent

    class Recorded:
        batch_size = plain.batch_size

        def run(self, *arguments):
            seen.update(weights_of(learner))
            plain.run(*arguments)

    learner.descent = Recorded()
    taught(learner, (SECOND,), first=2)
    assert all(np.array_equal(seen[name], before[name]) for name in before) == same


def test_a_test_set_is_routed_as_a_whole_only_where_the_task_is_told():
    learner = taught(CIA(**SIZE, grouping="tfidf", threshold=0.3), (FIRST, SECOND))
    calls = []
    route = learner.codebook.route
    learner.codebook.route = lambda texts, together: calls.append(together) or route(texts, together=together)
    learner.predict(asked(FIRST))
    learner.predict(asked(FIRST), task=0)
    learner.teacher_forced(FIRST, task=1)
    assert calls == [False, True, True]
