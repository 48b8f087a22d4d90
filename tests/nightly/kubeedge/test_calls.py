"""The keyword rule, and what BACKEND_TYPE changes."""

from __future__ import annotations

import pytest

from ianvs.kubeedge.calls import Estimator, offer


def test_keywords_arrive_where_they_are_named_or_where_any_may():
    def named(x, *, mode=0):  # sedna misses keyword-only arguments
        return x, mode

    def anything(x, **params):  # and those of a ** that is not called kwargs
        return x, params

    assert offer(named, 1, mode=2, other=3) == (1, 2)
    assert offer(anything, 1, mode=2, other=3) == (1, {"mode": 2, "other": 3})
    assert offer(max, 1, 2) == 2  # written in C


class Model:
    def __init__(self) -> None:
        self.calls: list[object] = []

    def train(self, *args, **kwargs):
        self.calls.append(("train", args, kwargs))

    def load(self, model_url="nothing"):
        self.calls.append(("load", model_url))

    def predict(self, data, mode=None):
        return data, mode

    def evaluate(self, data, metric):
        return data, metric


class Fitting(Model):
    def fit(self, samples):
        self.calls.append(("fit", samples))


def test_the_usual_backend(tmp_path, monkeypatch):
    monkeypatch.delenv("BACKEND_TYPE", raising=False)
    model = Fitting()
    estimator = Estimator(model)
    estimator.train("data", valid_data=None)  # fit before train, whatever it calls its argument
    estimator.load(str(tmp_path))
    estimator.load(str(tmp_path / "gone"))
    estimator.load("org/name", hub=True)
    assert model.calls == [("fit", "data"), ("load", str(tmp_path)), ("load", "org/name")]
    assert estimator.predict([1], mode="m", other=1) == ([1], "m")
    assert estimator.evaluate("d", metric="f", model_path="p") == ("d", "f")


@pytest.mark.parametrize(
    ("backend", "train", "loaded"),
    [
        ("TORCH", {"train_data": "d", "valid_data": None}, "nothing"),
        ("keras", {"train_data": "d", "valid_data": None}, "url"),
        ("TENSORFLOW", {"train_data": "d", "valid_data": None}, "url"),
    ],
)
def test_other_backends(tmp_path, monkeypatch, backend, train, loaded):
    monkeypatch.setenv("BACKEND_TYPE", backend)
    model = Model()
    estimator = Estimator(model)
    estimator.train("d", valid_data=None)
    estimator.load(str(tmp_path))
    assert model.calls == [("train", (), train), ("load", "nothing" if loaded == "nothing" else str(tmp_path))]
    assert estimator.predict([1], mode="m", other=1) == ([1], "m")
    assert estimator.evaluate("d", metric="f", model_path="p") == ("d", "f")
