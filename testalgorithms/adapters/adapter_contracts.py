"""The contracts: how plugins are created from the `url` of a job."""

import hashlib
from pathlib import Path

from ianvs.base.source_files import read_source, regular_files
from ianvs.config.contracts import Native


class Avalanche(Native):
    """A function that returns a strategy of Avalanche 0.6."""

    name = "avalanche"
    adapter = "ianvs.testalgorithms.adapters.avalanche_strategies"


class OfCheckout(Native):
    """Methods in a checkout of research code; `url` is a file in its folder models."""

    apart = True  # its modules are called utils, models, backbone
    counted = "models/**/*.py", "backbone/**/*.py", "utils/**/*.py"

    def algorithm_identity(self, algorithm):
        """Return the identity of the checkout's code that may run; `source` has the model's own file."""
        root = Path(algorithm.modules[0].url).parents[1]
        files = sorted(regular_files(root, *self.counted))
        text = b"".join(path.relative_to(root).as_posix().encode() + read_source(path) for path in files)
        return {"checkout": hashlib.sha256(text).hexdigest()}


class Mammoth(OfCheckout):
    """A ContinualModel of a checkout of Mammoth."""

    name = "mammoth"
    adapter = "ianvs.testalgorithms.adapters.mammoth_models"


class Pilot(OfCheckout):
    """A Learner of a checkout of LAMDA-PILOT."""

    name = "pilot"
    adapter = "ianvs.testalgorithms.adapters.pilot_learners"
    counted = (*OfCheckout.counted, "exps/*.json")
