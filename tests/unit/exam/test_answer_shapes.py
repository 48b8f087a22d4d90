"""Lists of batches in place of one prediction for each sample, and messages that are too long to be shown."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ianvs.base.errors import PluginError, shortened
from ianvs.base.types import Failure
from ianvs.exam.data_types import one_for_each
from ianvs.plugins.loader import cause
from tests.errors import errors_of


def tensors(shapes: list[Any]) -> list[Any]:
    torch = pytest.importorskip("torch")
    return [torch.zeros(shape, requires_grad=True) for shape in shapes]


def arrays(shapes: list[Any]) -> list[Any]:
    return [np.zeros(shape) for shape in shapes]


@pytest.mark.parametrize("make", [arrays, tensors])
@pytest.mark.parametrize("shapes", [[4, 4, 2], [5, 5], [(4, 3), (4, 3), (2, 3)]])
def test_a_list_of_batches_is_refused_with_its_shapes_and_the_remedy(
    make: Callable[[list[Any]], list[Any]], shapes: list[Any]
) -> None:
    found = make(shapes)
    with pytest.raises(PluginError) as refused:
        one_for_each(found, 10, "A.predict()")
    for shape in shapes:
        assert str(tuple(found[shapes.index(shape)].shape)) in str(refused.value)
    assert ("torch.cat" if make is tensors else "np.concatenate") in str(refused.value)
    assert len(np.concatenate([np.asarray(batch.detach() if make is tensors else batch) for batch in found])) == 10


@pytest.mark.parametrize("found", [[[1, 2], [3]], [np.zeros(3), 1], [np.zeros((2, 2)), np.zeros((2, 3))], {1, 2}, 7])
def test_what_is_no_array_is_an_error_about_predict(found: Any) -> None:
    assert errors_of(one_for_each, found, 5, "A.predict()") == [("invalid-result", "")]


def test_lists_of_one_answer_for_each_sample_stay_right() -> None:
    torch = pytest.importorskip("torch")
    for found in ([1, 2, 3], [torch.tensor(1), torch.tensor(2), torch.tensor(3)], (np.int64(1), 2, 3)):
        assert one_for_each(found, 3, "A").tolist() == [1, 2, 3]
    assert one_for_each(arrays([(2, 2)] * 3), 3, "A").shape == (3, 2, 2)


def test_a_message_of_megabytes_is_cut_once() -> None:
    message = "x" * 5_000_000
    failure = Failure("exception", "ValueError", message)
    assert len(failure.message) < 2_100
    assert Failure("exception", "ValueError", failure.message) == failure
    assert len(cause(ValueError(message), None)) < 2_100
    assert shortened("x" * 2_000) == "x" * 2_000
