"""The generated street scenes as a built-in source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from ianvs.testenv.datasets.streets import STREETS_CLASSES
from tests.errors import recorded

SMALL = {"train": 3, "test": 2, "size": [16, 32]}


def spec(using: tuple[str, ...] = (), **options: object) -> DatasetSpec:
    return DatasetSpec(name="streets", using=using, options={**SMALL, **options})


def test_labels_are_in_the_union_of_the_domains_classes(tmp_path: Path) -> None:
    found = data.load(spec(("CS", "CR")), tmp_path)
    assert found.kind == "segmentation"
    assert found.train.x.shape == (6, 16, 32, 3)
    assert found.train.y.dtype == np.uint8
    assert set(found.classes) == {*STREETS_CLASSES["CS"], *STREETS_CLASSES["CR"]}
    assert found.train.domains is not None
    assert found.train.domains.tolist() == ["CS"] * 3 + ["CR"] * 3
    for domain, ids in found.domain_classes.items():
        assert [found.classes[i] for i in ids] == list(STREETS_CLASSES[domain])
        labels = np.unique(found.train.y[found.train.domains == domain])
        assert set(labels.tolist()) <= {*ids, 255}


def test_a_fingerprint_tells_options_and_domains_apart_and_nothing_else(tmp_path: Path) -> None:
    base = data.fingerprint(spec(), tmp_path)
    assert data.fingerprint(spec(), tmp_path) == base
    others = [spec(seed=1), spec(train=4), spec(size=[16, 48]), spec(("CR", "CS"))]
    assert len({base, *(data.fingerprint(other, tmp_path) for other in others)}) == 5


def test_an_unknown_domain_or_option_names_the_closest() -> None:
    assert recorded(data.check_dataset(spec(("CS", "SIN"))).problems) == [("unknown-domain", "")]
    assert recorded(data.check_dataset(spec(sead=1)).problems) == [("unknown-option", "")]


@pytest.mark.parametrize("size", [[16], [16, 32, 3], 16])
def test_a_size_is_height_and_width(size: object) -> None:
    assert data.check_dataset(spec(size=size)).problems
