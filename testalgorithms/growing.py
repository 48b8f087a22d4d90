"""Networks that get new parts in later rounds."""

from pathlib import Path

from ianvs.authoring import TorchLearner
from ianvs.authoring.weight_files import is_plain


class Growing(TorchLearner):
    """A learner whose network has `grown` parts more than at first; `build_network` makes as many.

    The number is read before a saved network is built again.
    """

    grown = 0

    def load(self, path):
        plain = is_plain(Path(path))
        self.grown = 0 if plain else self.read(path)["method"]["grown"]
        super().load(path)

    def state(self):
        return {**super().state(), "grown": self.grown}
