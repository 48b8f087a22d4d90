"""Jobs on digits in which a method of another library is examined by its contract."""

from collections.abc import Mapping
from pathlib import Path

import yaml


def others_job(
    folder: Path,
    contract: str,
    url: str,
    name: str,
    hyperparameters: Mapping[str, object],
    *,
    python: str | None = None,
    workspace: str = "workspace",
    rounds: int = 5,
) -> Path:
    """Rounds of equally many digits. python: the interpreter of the plugin; None: ours. Returns the job's file."""
    grid = [{key: {"values": [value]}} for key, value in hyperparameters.items()]
    module = {"type": "basemodel", "name": name, "url": url, "hyperparameters": grid}
    spec: dict[str, object] = {"paradigm_type": "incrementallearning", "contract": contract, "modules": [module]}
    if python is not None:
        spec["python"] = python
    (folder / "algorithm.yaml").write_text(yaml.safe_dump({"algorithm": spec}))
    scenario = {"name": "class-incremental", "rounds": rounds, "class_order": "shuffled_3"}
    exam = {"dataset": {"name": "digits"}, "scenario": scenario, "metrics": ["accuracy"]}
    (folder / "testenv.yaml").write_text(yaml.safe_dump({"testenv": exam}))
    job = {
        "name": contract,
        "workspace": str(folder / workspace),
        "testenv": "testenv.yaml",
        "seeds": [0],
        "test_object": {"type": "algorithms", "algorithms": [{"name": "theirs", "url": "algorithm.yaml"}]},
        "rank": {"sort_by": [{"accuracy": "descend"}]},
    }
    file = folder / f"{workspace}.yaml"
    file.write_text(yaml.safe_dump({"benchmarkingjob": job}))
    return file
