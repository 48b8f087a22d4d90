"""Which hyperparameters a constructor takes: `**kwargs` that it reads itself, and those that it passes on."""

from typing import Any

import pytest

from ianvs.plugins.signature import constructor_parameters


class Base:
    def __init__(self, rate: float = 0.1) -> None:
        self.rate = rate


class ReadsItself(Base):
    def __init__(self, size: int = 1, **kwargs: Any) -> None:
        super().__init__()
        self.size, self.z = size, kwargs.get("z", 1)


class PassesOn(Base):
    def __init__(self, size: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = size


class PassesOnToAny(ReadsItself):
    def __init__(self, depth: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.depth = depth


@pytest.mark.parametrize(
    ("target", "names", "any_other"),
    [
        (Base, {"rate"}, False),
        (ReadsItself, {"size"}, True),
        (PassesOn, {"size", "rate"}, False),
        (PassesOnToAny, {"depth", "size"}, True),
    ],
)
def test_keyword_arguments_are_followed_as_far_as_they_are_passed_on(
    target: type,
    names: set[str],
    any_other: bool,
) -> None:
    found = constructor_parameters(target)
    assert set(found.names) == names
    assert found.open is any_other
