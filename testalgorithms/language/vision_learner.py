"""A language learner that sees by itself."""

from typing import Any

from ianvs.testalgorithms.language.language_learner import LanguageLearner


class VisionLanguageLearner(LanguageLearner):
    """A language model that sees the images of conversations; by default, the tiny one.

    A method on LanguageLearner takes the same base models: what it does is the same with images and without them.
    """

    def __init__(self, *, base_model: str = "tiny-vision", **tuning: Any) -> None:
        super().__init__(base_model=base_model, **tuning)
