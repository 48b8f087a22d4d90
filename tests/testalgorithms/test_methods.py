"""What every method promises, and what sets each apart."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from ianvs.authoring import Batch
from ianvs.plugins.contract import Learner
from ianvs.testalgorithms.agem.basemodel import AGEM
from ianvs.testalgorithms.biased_reservoir.basemodel import BiasedReservoir
from ianvs.testalgorithms.class_means.basemodel import ClassMeans
from ianvs.testalgorithms.cumulative.basemodel import Cumulative
from ianvs.testalgorithms.cwr_star.basemodel import CWRStar
from ianvs.testalgorithms.der.basemodel import DER
from ianvs.testalgorithms.derpp.basemodel import DERpp
from ianvs.testalgorithms.energy.basemodel import Energy
from ianvs.testalgorithms.er_ace.basemodel import ERACE
from ianvs.testalgorithms.ewc.basemodel import EWC
from ianvs.testalgorithms.finetune.basemodel import Finetune
from ianvs.testalgorithms.gdumb.basemodel import GDumb
from ianvs.testalgorithms.gem.basemodel import GEM
from ianvs.testalgorithms.icarl.basemodel import ICaRL
from ianvs.testalgorithms.joint.basemodel import Joint
from ianvs.testalgorithms.linear_probe.basemodel import LinearProbe
from ianvs.testalgorithms.lucir.basemodel import LUCIR
from ianvs.testalgorithms.lwf.basemodel import LwF
from ianvs.testalgorithms.mas.basemodel import MAS
from ianvs.testalgorithms.max_softmax.basemodel import MaxSoftmax
from ianvs.testalgorithms.mir.basemodel import MIR
from ianvs.testalgorithms.ncm.basemodel import NCM
from ianvs.testalgorithms.packnet.basemodel import PackNet
from ianvs.testalgorithms.ranpac.basemodel import RanPAC
from ianvs.testalgorithms.replay.basemodel import Replay
from ianvs.testalgorithms.rwalk.basemodel import RWalk
from ianvs.testalgorithms.si.basemodel import SI
from ianvs.testalgorithms.slda.basemodel import SLDA
from ianvs.testalgorithms.wa.basemodel import WA
from tests.testalgorithms.exam_of_arrays import Data, digits, examine, pictures, teach

FOLDER = Path(__file__).resolve().parents[2] / "testalgorithms"
SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}
LEARNERS = {
    "finetune": lambda **more: Finetune(**{**SHORT, **more}),
    "joint": lambda **more: Joint(**{**SHORT, **more}),
    "cumulative": lambda **more: Cumulative(**{**SHORT, **more}),
    "replay": lambda **more: Replay(**{"capacity": 60, **SHORT, **more}),
    "ewc": lambda **more: EWC(**{"strength": 300.0, **SHORT, **more}),
    "online ewc": lambda **more: EWC(**{"strength": 300.0, "gamma": 0.9, **SHORT, **more}),
    "lwf": lambda **more: LwF(**{"alpha": 2.0, **SHORT, **more}),
    "agem": lambda **more: AGEM(**{"capacity": 60, **SHORT, **more}),
    "gem": lambda **more: GEM(**{"samples_per_round": 20, **SHORT, **more}),
    "si": lambda **more: SI(**{"strength": 1.0, **SHORT, **more}),
    "der": lambda **more: DER(**{"capacity": 60, **SHORT, **more}),
    "der, as in a stream": lambda **more: DER(**{"capacity": 60, "fill": "during_round", **SHORT, **more}),
    "replay, as in a stream": lambda **more: Replay(
        **{"capacity": 60, "fill": "during_round", "replay_batch": 10, **SHORT, **more}
    ),
    "balanced replay": lambda **more: Replay(**{"capacity": 60, "selection": "balanced", **SHORT, **more}),
    "replay of each round": lambda **more: Replay(**{"capacity": 20, "selection": "per_round", **SHORT, **more}),
    "ewc, exact fisher": lambda **more: EWC(
        **{"strength": 300.0, "fisher": "exact", "fisher_samples": 50, **SHORT, **more}
    ),
    "lwf, head first": lambda **more: LwF(**{"alpha": 2.0, "alpha_growth": 0.5, "head_epochs": 1, **SHORT, **more}),
    "optimiser kept": lambda **more: Finetune(
        **{"keep_optimizer": True, "optimizer": "adamw", "decay": "cosine", "warm_up": 0.1, **SHORT, **more}
    ),
    "der++": lambda **more: DERpp(**{"capacity": 60, **SHORT, **more}),
    "er-ace": lambda **more: ERACE(**{"capacity": 60, **SHORT, **more}),
    "mir": lambda **more: MIR(**{"capacity": 60, **SHORT, **more}),
    "mir, as in a stream": lambda **more: MIR(
        **{"capacity": 60, "fill": "during_round", "replay_batch": 10, "candidates": 30, **SHORT, **more}
    ),
    "icarl": lambda **more: ICaRL(**{"capacity": 60, **SHORT, **more}),
    "wa": lambda **more: WA(**{"capacity": 60, **SHORT, **more}),
    "lucir": lambda **more: LUCIR(**{"capacity": 60, **SHORT, **more}),
    "mas": lambda **more: MAS(**{**SHORT, **more}),
    "rwalk": lambda **more: RWalk(**{**SHORT, **more}),
    "replay of exemplars": lambda **more: Replay(**{"capacity": 60, "selection": "herding", **SHORT, **more}),
    "gdumb": lambda **more: GDumb(**{"capacity": 60, **SHORT, **more}),
    "cwr*": lambda **more: CWRStar(**{**SHORT, **more}),
    "linear probe": lambda **more: LinearProbe(**{**SHORT, **more}),
    "max softmax": lambda **more: MaxSoftmax(**{"capacity": 60, **SHORT, **more}),
    "energy": lambda **more: Energy(**{"capacity": 60, **SHORT, **more}),
    "class means": lambda **more: ClassMeans(**{"capacity": 60, **SHORT, **more}),
    "biased reservoir": lambda **more: BiasedReservoir(**{"capacity": 60, "alpha": 2.0, **SHORT, **more}),
    "plain reservoir": lambda **more: BiasedReservoir(
        **{"capacity": 60, "formula": "reservoir", "reset": True, **SHORT, **more}
    ),
    "ncm": lambda **more: NCM(**{**SHORT, **more}),
    "slda": lambda **more: SLDA(**{**SHORT, **more}),
    "ranpac": lambda **more: RanPAC(**{"width": 200, **SHORT, **more}),
}
CLASSES = {
    "finetune": Finetune,
    "joint": Joint,
    "cumulative": Cumulative,
    "replay": Replay,
    "ewc": EWC,
    "lwf": LwF,
    "agem": AGEM,
    "gem": GEM,
    "si": SI,
    "der": DER,
    "derpp": DERpp,
    "gdumb": GDumb,
    "cwr_star": CWRStar,
    "linear_probe": LinearProbe,
    "biased_reservoir": BiasedReservoir,
    "max_softmax": MaxSoftmax,
    "energy": Energy,
    "class_means": ClassMeans,
    "er_ace": ERACE,
    "mir": MIR,
    "icarl": ICaRL,
    "wa": WA,
    "lucir": LUCIR,
    "mas": MAS,
    "rwalk": RWalk,
    "packnet": PackNet,
    "ncm": NCM,
    "slda": SLDA,
    "ranpac": RanPAC,
}
CLOSED_FORM = ("ncm", "slda", "ranpac")  # a head out of sums: no epochs, and no learning rate
every_method = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


def weights(learner):
    return [w.clone() for w in learner.network.state_dict().values()]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def answers(learner, exam, k, seed=5):
    context = {"round": k, "classes_seen": exam.seen(k), "num_classes": exam.num_classes, "seed": seed}
    return np.concatenate([learner.predict(Data(x), **context) for x, _ in exam.tests])


@every_method
def test_a_method_is_a_learner(make):
    assert isinstance(make(), Learner)


@every_method
def test_a_loaded_model_predicts_and_goes_on_bit_for_bit(make, tmp_path):
    exam = digits()
    learner = make()
    for k in (1, 2, 3):
        teach(learner, exam, k, seed=5)
    written = learner.save(tmp_path / "round-3.model")
    resumed = make()
    resumed.load(written)
    np.testing.assert_array_equal(answers(learner, exam, 3), answers(resumed, exam, 3))
    for k in (4, 5):
        teach(learner, exam, k, seed=5)
        teach(resumed, exam, k, seed=5)
    assert same(weights(learner), weights(resumed))
    np.testing.assert_array_equal(answers(learner, exam, 5), answers(resumed, exam, 5))


@every_method
def test_a_loaded_residual_network_goes_on_bit_for_bit(make, tmp_path):
    exam = pictures()
    learner, resumed = (make(network="resnet", widths=(4, 8)) for _ in range(2))
    teach(learner, exam, 1, seed=5)
    learner.save(tmp_path / "model")
    resumed.load(tmp_path / "model")  # the path that save() was given will do
    for each in (learner, resumed):
        teach(each, exam, 2, seed=5)
    np.testing.assert_array_equal(answers(learner, exam, 2), answers(resumed, exam, 2))
    assert same(weights(learner), weights(resumed))


@every_method
def test_loading_takes_a_learner_back_to_where_it_was_saved(make, tmp_path):
    exam = digits()
    learner, straight = make(), make()
    for each in (learner, straight):
        teach(each, exam, 1, seed=5)
        teach(each, exam, 2, seed=5)
    kept = learner.save(tmp_path / "kept")
    teach(learner, exam, 3, seed=5)
    learner.load(kept)  # as when model_eval does not adopt round 3
    for each in (learner, straight):
        teach(each, exam, 4, seed=5)
    assert same(weights(learner), weights(straight))


@every_method
def test_an_untrained_model_can_be_examined_saved_and_that_changes_nothing_later(make, tmp_path):
    exam = digits()
    examined, blind = make(), make()
    examined.save(tmp_path / "before")
    examined.load(tmp_path / "before")
    assert len(set(answers(examined, exam, 0))) > 1
    for learner in (examined, blind):
        teach(learner, exam, 1, seed=5)
    assert same(weights(examined), weights(blind))


@every_method
def test_only_classes_seen_are_ever_predicted(make):
    exam = digits()
    learner = make()
    for k in (1, 2, 3):
        teach(learner, exam, k, seed=5)
        assert set(answers(learner, exam, k)) <= set(exam.seen(k))


@pytest.mark.parametrize("make", [make for name, make in LEARNERS.items() if name not in ("ncm", "slda")])
def test_another_seed_gives_another_model(make):
    exam = digits()
    a, b = make(), make()
    teach(a, exam, 1, seed=5)
    teach(b, exam, 1, seed=6)
    assert not same(weights(a), weights(b))


def test_forgetting_replay_and_the_bound_are_in_the_order_that_the_field_knows():
    exam = digits()
    final = {name: examine(LEARNERS[name](), exam, seed=0)[0][-1].mean() for name in ("finetune", "replay", "joint")}
    assert final["finetune"] < 0.3 < final["replay"] - 0.2
    assert final["replay"] < final["joint"]


@pytest.mark.parametrize("name", ["gem", "der++", "gdumb", "cwr*", "plain reservoir"])
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


def taught_ewc(**options):
    exam = digits()
    learner = EWC(**SHORT, **options)
    for k in (1, 2, 3):
        teach(learner, exam, k, seed=0)
    return learner


def gradient(learner, loss):
    learner.network.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in learner.network.parameters()])


def some_batch(learner):
    x = torch.rand(16, 1, 8, 8)
    return Batch(x, torch.arange(16) % 6, learner.logits(x), learner.logits(x))


def test_ewc_gradient_equals_autograd_of_equation_3():
    learner = taught_ewc(strength=100.0)
    assert len(learner.anchors) == 3
    batch = some_batch(learner)
    ours = gradient(learner, learner.loss(batch))

    loss = torch.nn.functional.cross_entropy(learner.network(batch.x), batch.y)
    for anchor in learner.anchors:
        start = 0
        for parameter in learner.network.parameters():
            part = slice(start, start + parameter.numel())
            star, fisher = (v[part].view_as(parameter) for v in (anchor.theta, anchor.fisher))
            loss = loss + 100.0 / 2 * (fisher * (parameter - star).square()).sum()
            start += parameter.numel()
    torch.testing.assert_close(ours, gradient(learner, loss))


def test_ewc_penalty_reaches_the_gradient():
    learner = taught_ewc(strength=1000.0)
    batch = some_batch(learner)
    with_penalty = gradient(learner, learner.loss(batch))
    without = gradient(learner, torch.nn.functional.cross_entropy(learner.network(batch.x), batch.y))
    theta = torch.cat([p.detach().flatten() for p in learner.network.parameters()])
    by_hand = 1000.0 * sum(a.fisher * (theta - a.theta) for a in learner.anchors)
    assert by_hand.abs().max() > 0
    torch.testing.assert_close(with_penalty - without, by_hand, rtol=1e-4, atol=1e-6)


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


def test_online_ewc_keeps_one_anchor_whose_fisher_is_gamma_old_plus_new():
    exam = digits()
    decayed, forgetful = EWC(**SHORT, strength=0.0, gamma=0.5), EWC(**SHORT, strength=0.0, gamma=0.0)
    for k in (1, 2):  # strength 0: both walk the same way
        olds = [learner.anchors[0].fisher if k > 1 else 0.0 for learner in (decayed, forgetful)]
        for learner in (decayed, forgetful):
            teach(learner, exam, k, seed=0)
    assert len(decayed.anchors) == 1
    torch.testing.assert_close(decayed.anchors[0].fisher, 0.5 * olds[0] + forgetful.anchors[0].fisher)
    assert torch.equal(decayed.anchors[0].theta, torch.cat([w.flatten() for w in weights(decayed)]))


def test_lwf_listens_to_the_model_of_the_round_before_on_its_classes_only():
    exam = digits()
    learner = LwF(alpha=3.0, temperature=2.0, **SHORT)
    teach(learner, exam, 1, seed=0)
    before = [p.clone() for p in learner.network.parameters()]
    losses = []
    learner_loss = learner.loss

    def observed(batch):
        loss = learner_loss(batch)
        if not losses:
            z, old = batch.logits[:, [0, 1]], teacher_logits(before, batch.x)[:, [0, 1]]
            p, q = (old / 2).softmax(1), (z / 2).softmax(1)
            told = 4 * (p * (p / q).log()).sum(1).mean()
            losses.append((loss.item(), (torch.nn.functional.cross_entropy(batch.logits, batch.y) + 3 * told).item()))
        return loss

    learner.loss = observed
    teach(learner, exam, 2, seed=0)
    assert losses[0][0] == pytest.approx(losses[0][1], rel=1e-5)
    assert learner.known == [0, 1, 2, 3]


def teacher_logits(parameters, x):
    first_w, first_b, last_w, last_b = parameters
    return (x.flatten(1) @ first_w.T + first_b).relu() @ last_w.T + last_b


@pytest.mark.parametrize("folder", CLASSES)
def test_a_method_is_short_and_its_files_name_its_class_and_hyperparameters(folder):
    source = (FOLDER / folder / "basemodel.py").read_text()
    assert len(source.splitlines()) < 80
    for file in ("algorithm.yaml", "resnet.yaml"):
        (module,) = yaml.safe_load((FOLDER / folder / file).read_text())["algorithm"]["modules"]
        assert re.search(rf"class {module['name']}\((Torch|Unseen|Replay|Exemplar|ClosedForm)Learner|DER\)", source)
        values = {name: entry["values"] for pair in module["hyperparameters"] for name, entry in pair.items()}
        assert folder in CLOSED_FORM or {"learning_rate", "epochs", "batch_size"} <= set(values)
        for name, choices in values.items():
            for choice in choices:
                CLASSES[folder](**{name: choice})


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
