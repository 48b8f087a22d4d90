"""How a domain is taken up: against the authors' bookkeeping, and what must not change of earlier domains."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import torch

from ianvs.testalgorithms.mdil_ss.losses import old_domain_losses, weighted_cross_entropy
from ianvs.testalgorithms.mdil_ss.protocol import (
    frozen_copy,
    initialise_domain,
    poly_lr,
    trainable_groups,
    training_mode,
)
from ianvs.testalgorithms.nets import ErfNet, ErfNetShape
from ianvs.testalgorithms.nets.erfnet_import import export_state

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "mdil.json").read_text())
TINY = ErfNetShape(channels=(4, 6, 8), blocks=1, dilations=(2,), decoder_blocks=1, dropout=(0.1, 0.3))
STILL = ErfNetShape(channels=(4, 6, 8), blocks=1, dilations=(2,), decoder_blocks=1, dropout=(0.0, 0.0))


def scrambled(network):
    """`network` as after some training: no two tensors are alike, and variances are positive."""
    for tensor in network.state_dict().values():
        tensor.copy_((torch.rand(tensor.shape) + 0.5).to(tensor.dtype) if tensor.dim() == 1 else tensor * 1.1 + 0.01)
        if not tensor.dim():
            tensor.fill_(42)
    return network


def distill_old_domains(network, teacher, x, domain):
    return sum(old_domain_losses(network, teacher, x, range(domain)), x.new_zeros(()))


def copied(state):
    return {name: value.clone() for name, value in state.items()}


def domain_state(network, domain):
    modules = network.domain_modules(domain)
    return {
        f"{i}.{name}": value.clone() for i, module in enumerate(modules) for name, value in module.state_dict().items()
    }


def changed(before, after):
    assert before.keys() == after.keys()
    return [name for name, value in before.items() if not torch.equal(value, after[name])]


@pytest.mark.parametrize(("epoch", "rate"), [(int(e), rate) for e, rate in GOLDEN["poly_lr"].items()])
def test_the_learning_rate_falls_as_published(epoch, rate):
    assert poly_lr(5e-4, epoch, 150) == pytest.approx(rate, rel=1e-12)


def kind_of(name):
    if "output_conv" in name:
        return "output_conv"
    if "parallel_conv" in name:
        return "rap"
    if name.endswith(("running_mean", "running_var", "num_batches_tracked")):
        return "running_stats"
    return "bn_affine" if "bn" in name else "conv"


def test_a_new_domain_starts_with_the_published_tensors():
    network = scrambled(ErfNet([20], adapters=True))
    old = copied(export_state(network))
    network.add_domain(20)
    added = copied(export_state(network))
    initialise_domain(network, 1, 0)
    books = {}
    for name, value in export_state(network).items():
        source = re.sub(r"(?<=^decoder\.)1|(?<=bn_ini\.)1|(?<=(bns|onv)_[12]\.)1(?=\.)", "0", name)
        part = "other" if source == name else "dec1" if name.startswith("decoder") else "enc_task1"
        fate = "copied" if torch.equal(value, old[source]) else "unknown"
        if fate == "unknown" and torch.equal(value, added[name]):
            fate = "default_init"
        books.setdefault(f"{part}/{kind_of(name)}", Counter())[fate] += 1
    assert books == GOLDEN["step2_init"]


def test_a_new_branch_of_the_encoder_agrees_with_its_source_in_training_and_not_in_evaluation():
    torch.manual_seed(0)
    network = scrambled(ErfNet([3], STILL, adapters=True)).double()
    network.add_domain(4)
    initialise_domain(network, 1, 0)
    x = torch.rand(2, 3, 16, 16, dtype=torch.float64)
    with torch.no_grad():
        network.eval()
        assert not torch.allclose(network.encode(x, 1), network.encode(x, 0))
        network.train()
        assert torch.equal(network.encode(x, 1), network.encode(x, 0))


def test_with_running_statistics_copied_both_branches_agree_everywhere():
    network = scrambled(ErfNet([3], TINY, adapters=True)).eval()
    network.add_domain(4)
    initialise_domain(network, 1, 0, copy_running_statistics=True)
    x = torch.rand(2, 3, 16, 16)
    assert torch.equal(network.encode(x, 1), network.encode(x, 0))


def test_without_adapters_a_new_domain_takes_over_the_decoder():
    network = scrambled(ErfNet([3], TINY))
    network.add_domain(4)
    encoder = copied(network.units.state_dict())
    initialise_domain(network, 1, 0)
    assert not changed(network.decoders[0].layers.state_dict(), network.decoders[1].layers.state_dict())
    assert not changed(encoder, network.units.state_dict())


@pytest.mark.parametrize(
    ("classes", "domain", "sizes", "frozen"),
    [([20, 20], 1, [1_868_252, 501_796], 501_796), ([20, 20, 27], 2, [1_868_252, 502_251], 1_003_592)],
)
def test_what_learns_and_what_is_frozen_is_as_published(classes, domain, sizes, frozen):
    with torch.device("meta"):
        network = ErfNet(classes, adapters=True)
    groups = trainable_groups(network, domain, lr_shared=5e-6, lr_new=5e-4)
    assert [sum(p.numel() for p in group["params"]) for group in groups] == sizes
    assert [group["lr"] for group in groups] == [5e-6, 5e-4]
    assert sum(p.numel() for p in network.parameters() if not p.requires_grad) == frozen
    assert all(p.requires_grad for group in groups for p in group["params"])


def test_what_has_no_learning_rate_is_frozen():
    network = ErfNet([3, 4], TINY)
    (group,) = trainable_groups(network, 1, lr_shared=0.0, lr_new=5e-4)
    assert {id(p) for p in group["params"]} == {id(p) for p in network.decoders[1].parameters()}
    assert {id(p) for p in network.parameters() if p.requires_grad} == {id(p) for p in group["params"]}


def learn(network, domain, *, strength=0.1, lr_shared=1e-3, drift=False, steps=4):
    """A few steps of MDIL-SS on noise: L_CE + strength * L_KLD, with Adam as published."""
    teacher = frozen_copy(network)
    groups = trainable_groups(network, domain, lr_shared, lr_new=1e-2)
    optimizer = torch.optim.Adam(groups, weight_decay=1e-4)
    classes = network.classes[domain]
    with training_mode(network, domain, old_statistics_drift=drift):
        for _ in range(steps):
            x, y = torch.rand(3, 3, 16, 16), torch.randint(0, classes, (3, 16, 16))
            loss = weighted_cross_entropy(network(x, domain), y, torch.ones(classes))
            if strength:
                loss = loss + strength * distill_old_domains(network, teacher, x, domain)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def three_domains():
    torch.manual_seed(0)
    network = ErfNet([3], TINY, adapters=True)
    learn(network, 0)
    for domain, classes in ((1, 5), (2, 4)):
        network.add_domain(classes)
        initialise_domain(network, domain, domain - 1)
    return network


def test_a_step_leaves_every_tensor_of_earlier_domains_bit_identical():
    network = three_domains()
    for domain in (1, 2):
        before = [domain_state(network, j) for j in range(3)]
        encoder = copied(network.encoder.state_dict())
        learn(network, domain)
        for other in range(3):
            now = changed(before[other], domain_state(network, other))
            assert bool(now) == (other == domain), (other, now)
        assert len(changed(before[domain], domain_state(network, domain))) == len(before[domain])
        assert len(changed(encoder, network.encoder.state_dict())) == len(encoder)


def test_with_the_quirk_old_statistics_drift_and_old_parameters_do_not():
    network = three_domains()
    before = domain_state(network, 0)
    learn(network, 1, drift=True)
    now = changed(before, domain_state(network, 0))
    assert sorted(now) == sorted(
        name for name in before if name.endswith(("running_mean", "running_var", "num_batches_tracked"))
    )


def test_without_distillation_and_without_shared_learning_old_predictions_are_bit_identical():
    network = three_domains().eval()
    x = torch.rand(2, 3, 24, 16)
    with torch.no_grad():
        before = [network(x, j) for j in range(3)]
        with torch.enable_grad():
            learn(network, 2, strength=0.0, lr_shared=0.0)
        after = [network(x, j) for j in range(3)]
    assert [torch.equal(b, a) for b, a in zip(before, after, strict=True)] == [True, True, False]


def test_at_equal_weights_distillation_is_zero_and_so_is_its_gradient():
    torch.manual_seed(0)
    network = ErfNet([3, 5, 4], STILL, adapters=True)
    trainable_groups(network, 2, lr_shared=5e-6, lr_new=5e-4)
    teacher = frozen_copy(network)
    with training_mode(network, 2):
        loss = distill_old_domains(network, teacher, torch.rand(2, 3, 16, 16), 2)
        loss.backward()
    assert loss.item() == 0.0
    assert all(not p.grad.any() for p in network.shared_parameters())


def test_the_gradient_of_distillation_reaches_shared_tensors_only():
    torch.manual_seed(0)
    network = ErfNet([20, 20], adapters=True)
    teacher = frozen_copy(ErfNet([20, 20], adapters=True))
    trainable_groups(network, 1, lr_shared=5e-6, lr_new=5e-4)
    with training_mode(network, 1):
        distill_old_domains(network, teacher, torch.rand(2, 3, 32, 32), 1).backward()
    reached = {
        "shared": network.shared_parameters(),
        "task0_ds": network.domain_parameters(0),
        "task1_ds": network.domain_parameters(1),
    }
    counts = {k: sum(p.grad is not None and bool(p.grad.any()) for p in ps) for k, ps in reached.items()}
    assert counts == GOLDEN["kd_gradient_tensors"]
    assert not any(p.grad is not None for p in teacher.parameters())


def test_distillation_keeps_old_predictions_nearer_to_the_teacher():
    def distance(strength):
        torch.manual_seed(1)
        network = ErfNet([3, 5], STILL, adapters=True)
        teacher = frozen_copy(network)
        learn(network, 1, strength=strength, lr_shared=2e-2, steps=20)
        with torch.no_grad():
            return distill_old_domains(network, teacher, torch.rand(8, 3, 16, 16), 1).item()

    assert distance(100.0) < 0.5 * distance(0.0)


def test_dropout_and_the_new_domain_train_while_old_branches_rest():
    network = ErfNet([3, 5], TINY, adapters=True).eval()
    with training_mode(network, 1):
        assert all(module.training for module in network.encoder.modules())
        assert all(m.training for part in network.domain_modules(1) for m in part.modules())
        assert not any(m.training for part in network.domain_modules(0) for m in part.modules())
    assert not any(module.training for module in network.modules())


def test_a_teacher_is_frozen_and_apart():
    network = ErfNet([3], TINY, adapters=True).train()
    teacher = frozen_copy(network)
    assert network.training and not any(module.training for module in teacher.modules())
    assert not any(p.requires_grad for p in teacher.parameters())
    with torch.no_grad():
        network.decoders[0].classifier.bias.add_(1.0)
    assert not torch.equal(network.decoders[0].classifier.bias, teacher.decoders[0].classifier.bias)
    assert all(module.training for module in frozen_copy(network, training=True).modules())
