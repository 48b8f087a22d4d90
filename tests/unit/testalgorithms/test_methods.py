"""What every method promises, and what sets each apart."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from ianvs.testalgorithms.biased_reservoir.basemodel import BiasedReservoir
from ianvs.testalgorithms.cumulative.basemodel import Cumulative
from ianvs.testalgorithms.cwr_star.basemodel import CWRStar
from ianvs.testalgorithms.derpp.basemodel import DERpp
from ianvs.testalgorithms.ewc.basemodel import EWC
from ianvs.testalgorithms.gdumb.basemodel import GDumb
from ianvs.testalgorithms.gem.basemodel import GEM
from ianvs.testalgorithms.joint.basemodel import Joint
from ianvs.testalgorithms.replay.basemodel import Replay
from tests.marks import slow
from tests.nightly.conformance.every_method import CLASSIFIERS, TOLD_THE_TASK, same, weights
from tests.unit.testalgorithms.exam_of_arrays import Data, digits, examine, teach

FOLDER = Path(__file__).resolve().parents[3] / "testalgorithms"
SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}
LEARNERS = {name: one.make for name, one in CLASSIFIERS.items()}
every_method = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


def answers(learner, exam, k, seed=5):
    context = {"round": k, "classes_seen": exam.seen(k), "num_classes": exam.num_classes, "seed": seed}
    return np.concatenate([learner.predict(Data(x), **context) for x, _ in exam.tests])


def test_forgetting_replay_and_the_bound_are_in_the_order_that_the_field_knows():
    exam = digits()
    final = {name: examine(LEARNERS[name](), exam, seed=0)[0][-1].mean() for name in ("finetune", "replay", "joint")}
    assert final["finetune"] < 0.3 < final["replay"] - 0.2
    assert final["replay"] < final["joint"]


@pytest.mark.parametrize("name", ["gdumb", "cwr*", "plain reservoir", slow("gem"), slow("der++")])
def test_methods_that_are_known_to_forget_less_than_fine_tuning_do(name):
    exam = digits()
    longer = {**SHORT, "epochs": 8}
    learner = {
        "gem": lambda: GEM(samples_per_round=40, **longer),
        "der++": lambda: DERpp(capacity=200, **longer),
        "gdumb": lambda: GDumb(capacity=200, **longer),
        "cwr*": lambda: CWRStar(**longer),
        "plain reservoir": lambda: BiasedReservoir(capacity=200, formula="reservoir", **longer),
    }[name]()
    assert examine(learner, exam, seed=0)[0][-1].mean() > 0.5  # fine-tuning ends at 0.2


def test_joint_starts_again_in_each_round_and_cumulative_goes_on():
    exam = digits()
    went_through, came_late = Joint(**SHORT), Joint(**SHORT)
    for k in (1, 2, 3):
        teach(went_through, exam, k, seed=5)
    teach(came_late, exam, 3, seed=5)
    assert same(weights(went_through), weights(came_late))
    cumulative = Cumulative(**SHORT)
    for k in (1, 2, 3):
        teach(cumulative, exam, k, seed=5)
    assert not same(weights(cumulative), weights(came_late))


def test_replay_shows_as_many_old_samples_as_new_ones_and_only_old_classes():
    exam = digits()
    learner = Replay(capacity=500, **SHORT)
    sizes = []
    plain_loss = learner.loss
    learner.loss = lambda batch: sizes.append(batch.y.tolist()) or plain_loss(batch)
    teach(learner, exam, 1, seed=0)
    assert all(len(y) <= 32 for y in sizes)
    sizes.clear()
    teach(learner, exam, 2, seed=0)
    for y in sizes:
        half = len(y) // 2
        assert set(y[:half]) <= {2, 3}
        assert set(y[half:]) <= {0, 1}
    assert len(learner.memory) == 500
    assert learner.memory.nbytes == 500 * (64 * 4 + 8)


def test_a_stronger_ewc_keeps_the_weights_closer():
    def moved(strength):
        learner = EWC(**SHORT, strength=strength)
        exam = digits()
        teach(learner, exam, 1, seed=0)
        anchor = learner.anchors[0]
        teach(learner, exam, 2, seed=0)
        theta = torch.cat([p.detach().flatten() for p in learner.network.parameters()])
        return float(anchor.distance(theta))

    assert moved(1000.0) < 0.5 * moved(0.0)


@pytest.mark.parametrize("folder", sorted({one.place for one in (*CLASSIFIERS.values(), *TOLD_THE_TASK.values())}))
def test_a_method_is_short_and_its_files_name_its_class(folder):
    source = (FOLDER / folder / "basemodel.py").read_text()
    assert len(source.splitlines()) < 120
    files = sorted((FOLDER / folder).glob("*.yaml"))
    assert "algorithm.yaml" in [file.name for file in files]
    for file in files:
        (module,) = yaml.safe_load(file.read_text())["algorithm"]["modules"]
        assert re.search(rf"^class {module['name']}\(", source, re.MULTILINE), file


@pytest.mark.gpu
@every_method
def test_on_an_accelerator_a_model_learns_like_on_the_cpu_and_is_loaded_exactly(make, tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    exam = digits()
    on_cpu, on_gpu, resumed = make(), make(), make()
    for learner, device in ((on_cpu, "cpu"), (on_gpu, "cuda")):
        for k in (1, 2):
            teach(learner, exam, k, seed=5, device=device)
    resumed.load(on_gpu.save(tmp_path / "model"))
    for learner in (on_gpu, resumed):
        teach(learner, exam, 3, seed=5, device="cuda")
    assert same(weights(on_gpu), weights(resumed))
    teach(on_cpu, exam, 3, seed=5)
    for a, b in zip(weights(on_cpu), weights(on_gpu), strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=1e-2, atol=1e-2)
