"""Networks by name, optimisers, masks, gathering and random streams."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ianvs.authoring import Joined, RoundData, mlp, resnet
from ianvs.authoring.networks import build_network
from ianvs.authoring.optimizers import OptimizerMaker, build_optimizer, continue_from
from ianvs.authoring.randomness import seeded, torch_generator
from ianvs.authoring.round_data import block_bytes, gather, output_mask
from tests.errors import errors_of


def round_data(x, y, **changes):
    made = {"round": 1, "seed": 0, "classes_seen": (), "device": torch.device("cpu"), "prepare": torch.Tensor.float}
    return RoundData(x, y, **{**made, **changes})


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 9, 13)])
def test_the_residual_network_takes_pictures_of_any_size(shape):
    network = resnet(shape, 7)
    assert network(torch.zeros(2, *shape)).shape == (2, 7)
    assert network[-1].in_features == 128


def test_the_perceptron_takes_pictures_and_vectors_and_any_number_of_layers():
    assert mlp((1, 8, 8), 10)(torch.zeros(2, 1, 8, 8)).shape == (2, 10)
    assert [m.out_features for m in mlp((5,), 3, hidden=(8, 4)) if hasattr(m, "out_features")] == [8, 4, 3]
    assert len(mlp((5,), 3, hidden=())) == 2


def test_an_unknown_network_is_refused_with_the_closest_name():
    assert errors_of(build_network, "resnett", (3, 8, 8), 2) == [("invalid-choice", "")]


def test_a_residual_network_on_vectors_is_refused_with_the_remedy():
    assert errors_of(build_network, "resnet", (64,), 2) == [("refused-arguments", "")]


@pytest.mark.parametrize("momentum, weight_decay", [(0.0, 0.0), (0.9, 0.0), (0.9, 1e-2), (0.0, 1e-2)])
@pytest.mark.parametrize("size", [1, 3, 16, 48, 100, 4096])
def test_sgd_is_torchs_own_bit_for_bit_whatever_the_size(size, momentum, weight_decay):
    def walk(make):
        draw = torch.Generator().manual_seed(0)
        parameter, idle = (torch.nn.Parameter(torch.randn(size, generator=draw)) for _ in range(2))
        optimizer = make([parameter, idle])
        for number in range(20):
            parameter.grad = torch.randn(size, generator=draw)
            idle.grad = torch.randn(size, generator=draw) if number > 9 else None  # comes in late
            optimizer.step()
        return torch.cat([parameter.detach(), idle.detach()])

    options = {"momentum": momentum, "weight_decay": weight_decay}
    theirs = walk(lambda parameters: torch.optim.SGD(parameters, lr=0.03, **options))
    assert torch.equal(walk(lambda p: build_optimizer("sgd", [(p, 0.03)], **options)), theirs)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_and_torchs_go_on_from_each_other(momentum):
    def walk(first, second):
        draw = torch.Generator().manual_seed(0)
        parameters = [torch.nn.Parameter(torch.randn(size, generator=draw)) for size in (16, 5)]
        earlier = None
        for make in (first, second):
            optimizer = make(parameters)
            continue_from(optimizer, earlier)
            for _ in range(3):
                for p in parameters:
                    p.grad = torch.randn(len(p), generator=draw)
                optimizer.step()
            earlier = optimizer.state_dict()["state"]
        return torch.cat([p.detach() for p in parameters])

    def ours(parameters):
        return build_optimizer("sgd", [(parameters, 0.03)], momentum=momentum)

    def torchs(parameters):
        return torch.optim.SGD(parameters, lr=0.03, momentum=momentum)

    theirs = walk(torchs, torchs)
    assert torch.equal(walk(ours, torchs), theirs)
    assert torch.equal(walk(torchs, ours), theirs)
    assert torch.equal(walk(ours, ours), theirs)


def test_adam_is_torchs_own_to_rounding():
    def walk(make):
        torch.manual_seed(0)
        network = mlp((6,), 3, hidden=(16,))
        optimizer = make(network.parameters())
        for _ in range(20):
            optimizer.zero_grad()
            network(torch.ones(4, 6)).square().sum().backward()
            optimizer.step()
        return torch.cat([p.detach().flatten() for p in network.parameters()])

    ours = walk(lambda p: build_optimizer("adam", [(p, 0.01)], weight_decay=0.1))
    torch.testing.assert_close(ours, walk(lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1)))


@pytest.mark.parametrize(
    ("name", "options"), [("sgd", {}), ("sgd", {"momentum": 0.9, "weight_decay": 0.01}), ("adam", {}), ("adamw", {})]
)
def test_an_optimiser_that_is_made_like_new_is_new(name, options):
    def walk(make):
        draw = torch.Generator().manual_seed(0)
        some, other = (torch.nn.Parameter(torch.randn(size, generator=draw)) for size in (16, 7))
        for round_ in range(6):
            if round_ == 3:
                other.requires_grad_(False)
            if round_ == 4:
                some = torch.nn.Parameter(some.detach().clone())
            optimizer = make(name, [([some], 0.03), ([other], 0.3 if round_ == 5 else 0.1)], **options)
            for step in range(2):
                for p in filter(lambda p: p.requires_grad, (some, other)):
                    p.grad = torch.randn(len(p), generator=draw)
                optimizer.param_groups[0]["lr"] = 0.03 / (step + 1)
                optimizer.step()
        return torch.cat([some.detach(), other.detach()])

    assert torch.equal(walk(OptimizerMaker()), walk(build_optimizer))


def test_an_unknown_optimizer_is_refused_with_the_closest_name():
    assert errors_of(build_optimizer, "adm", [(mlp((2,), 2).parameters(), 0.1)]) == [("invalid-choice", "")]


def test_the_mask_hides_what_is_not_seen_and_nothing_else():
    cpu = torch.device("cpu")
    assert output_mask((2, 0), 4, cpu).tolist() == [0.0, -math.inf, 0.0, -math.inf]
    assert output_mask((), 4, cpu) is None
    assert output_mask((3, 2, 1, 0), 4, cpu) is None


@given(
    st.lists(st.integers(0, 5), max_size=9),
    st.sampled_from([torch.uint8, torch.float32]),
    st.sampled_from([(), (4,), (3, 5, 2), (1, 4, 4)]),
    st.booleans(),
)
def test_gathering_equals_indexing(index, dtype, shape, channels_last):
    x = torch.arange(6 * math.prod(shape)).reshape(6, *shape).to(dtype)
    if channels_last and len(shape) == 3:
        x = x.contiguous(memory_format=torch.channels_last)
    index = torch.tensor(index, dtype=torch.int64)
    assert torch.equal(gather(x, index), x[index])


@pytest.mark.parametrize("batch_size", [1, 4, 7, 10, 32])
def test_a_pass_brings_every_sample_once_in_the_order_of_the_stream(batch_size):
    data = round_data(torch.arange(10.0)[:, None], torch.arange(10))
    batches = list(data.shuffled(batch_size, data.generator("order")))
    order = torch.randperm(10, generator=torch_generator(0, 1, "order"))
    assert torch.equal(torch.cat([y for _, y, _ in batches]), order)
    assert torch.equal(torch.cat([x for x, _, _ in batches])[:, 0], order.float())
    assert torch.equal(torch.cat([stored for _, _, stored in batches])[:, 0], order.float())
    assert [len(y) for _, y, _ in batches] == [len(part) for part in order.split(batch_size)]


def test_a_pass_over_more_than_one_block_is_the_same_pass():
    block = block_bytes(torch.device("cpu"))
    n = 10  # samples, three of which are a block
    data = round_data(torch.arange(n, dtype=torch.uint8)[:, None].repeat(1, block // 3), torch.arange(n))
    prepared = []
    data = round_data(data.x, data.y, prepare=lambda x: prepared.append(len(x)) or x)
    ys = [y for x, y, _ in data.shuffled(1, data.generator("order")) if bool((x[:, 0] == y).all())]
    assert torch.equal(torch.cat(ys), torch.randperm(n, generator=data.generator("order")))
    assert prepared == [3, 3, 3, 1]


def test_streams_differ_by_purpose_and_round_and_repeat_themselves():
    data = round_data(torch.zeros(1, 1), torch.zeros(1))
    draws = {torch.rand(1, generator=data.generator(purpose)).item() for purpose in ("order", "memory", "order")}
    assert len(draws) == 2
    later = round_data(torch.zeros(1, 1), torch.zeros(1), round=2)
    assert torch.rand(1, generator=later.generator("order")).item() not in draws


def test_seeding_inside_does_not_show_outside():
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    with seeded(5):
        inside = torch.rand(2)
    assert torch.equal(torch.rand(2), expected)
    with seeded(5):
        assert torch.equal(torch.rand(2), inside)


def test_joined_rounds_are_one_after_the_other():
    class Part:
        def __init__(self, start, stop):
            self.i = torch.arange(start, stop)

        def __len__(self):
            return len(self.i)

        def tensors(self, device="cpu"):
            return self.i[:, None].float(), self.i

    joined = Joined((Part(0, 3), Part(3, 5)))
    x, y = joined.tensors()
    assert len(joined) == 5
    assert y.tolist() == [0, 1, 2, 3, 4] == x[:, 0].tolist()
