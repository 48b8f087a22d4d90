"""What becomes of pictures: as the libraries' own transforms, by default as the weights were trained."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

from ianvs.authoring import TorchLearner
from ianvs.authoring.preprocessing import published
from ianvs.running.planning.identity import published_pictures
from tests.errors import errors_of, printed

LEVEL = 1.01 / 255  # PIL rounds to whole levels


def picture(height, width):
    """(H, W, 3) uint8 with edges, gradients and noise, not near 0 or 255, where PIL cuts off between its passes."""
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(4).integers(50, 90, (height, width, 3))
    shapes = np.stack([(x // 7 + y // 5) % 2 * 110, x * 110 // width, y * 110 // height], 2)
    return (shapes + noise).astype(np.uint8)


def prepared(learner, image):
    return learner.prepare(torch.from_numpy(image).permute(2, 0, 1)[None])[0]


def close(found, expected, std):
    assert found.shape == expected.shape
    difference = (found - expected).abs() * torch.tensor(std).view(3, 1, 1)
    assert difference.max() <= 2.5 * LEVEL  # in two passes, PIL rounds twice
    assert difference.mean() <= LEVEL / 2


SIZES = [(32, 32), (300, 260), (70, 224)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["vit_base_patch16_224", "vit_small_patch14_dinov2", "vit_base_patch16_clip_224"])
def test_pictures_are_prepared_as_timm_does(name, size):
    timm = pytest.importorskip("timm")
    from PIL import Image

    config = timm.data.resolve_data_config(pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
    expected = timm.data.create_transform(**config)(Image.fromarray(picture(*size)))
    learner = TorchLearner(network=f"timm/{name}", weights="pretrained")
    close(prepared(learner, picture(*size)), expected, config["std"])
    assert learner.remark == ""


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    "name, weights", [("vit_b_16", "IMAGENET1K_V1"), ("vit_b_16", "IMAGENET1K_SWAG_E2E_V1"), ("resnet50", "DEFAULT")]
)
def test_pictures_are_prepared_as_torchvision_does(name, weights, size):
    from PIL import Image
    from torchvision.models import get_model_weights

    transforms = get_model_weights(name)[weights].transforms()
    learner = TorchLearner(network=name, weights=weights)
    close(prepared(learner, picture(*size)), transforms(Image.fromarray(picture(*size))), transforms.std)


PROCESSORS = {
    "ViT": {"size": {"height": 40, "width": 40}, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
    "CLIP": {
        "size": {"shortest_edge": 50},
        "do_center_crop": True,
        "crop_size": {"height": 40, "width": 40},
        "resample": 3,
        "image_mean": [0.48, 0.46, 0.41],
        "image_std": [0.27, 0.26, 0.28],
    },
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", PROCESSORS)
def test_pictures_are_prepared_as_hugging_face_does(tmp_path, kind, size):
    transformers = pytest.importorskip("transformers")
    from PIL import Image

    getattr(transformers, f"{kind}Config" if kind == "ViT" else "CLIPVisionConfig")().save_pretrained(tmp_path)
    said = PROCESSORS[kind] | {"do_resize": True, "do_normalize": True, "image_processor_type": f"{kind}ImageProcessor"}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    processor = getattr(transformers, f"{kind}ImageProcessor").from_pretrained(tmp_path)
    expected = processor(Image.fromarray(picture(*size)), return_tensors="pt").pixel_values[0]
    learner = TorchLearner(network=str(tmp_path), weights=str(tmp_path))
    close(prepared(learner, picture(*size)), expected, said["image_std"])


def test_what_is_said_is_taken_and_a_scale_that_is_not_the_weights_own_is_noted():
    pytest.importorskip("timm")
    weights = {"network": "timm/vit_base_patch16_224", "weights": "pretrained"}
    learner = TorchLearner(**weights, picture_size=96, interpolation="bilinear", crop="none", scale="unit")
    x = torch.from_numpy(picture(32, 48)).permute(2, 0, 1)[None]
    expected = interpolate(x.float(), (96, 96), mode="bilinear", antialias=True).div_(255)
    assert torch.equal(learner.prepare(x), expected)
    assert "unit" in learner.remark and "symmetric" in learner.remark
    printed(learner.remark)
    assert TorchLearner(**weights, scale="symmetric").remark == ""
    assert TorchLearner(**weights, picture_size=[48, 80]).prepare(x).shape == (1, 3, 48, 80)
    # Without weights, and with those of our own networks, pictures stay as they were before there were such options.
    plain = TorchLearner(network="resnet")
    assert torch.equal(plain.prepare(x), x.float().div_(127.5).sub_(1))


def test_what_is_published_is_part_of_the_identity():
    pytest.importorskip("timm")
    grid = [("network", ("timm/vit_base_patch16_224", "vit")), ("weights", ("pretrained",))]
    module = SimpleNamespace(constants={"epochs": 1}, grid=grid)
    assert published_pictures(SimpleNamespace(modules=[module])) == {
        "timm/vit_base_patch16_224, pretrained": {
            "picture_size": [224, 224],
            "interpolation": "bicubic",
            "crop": 0.9,
            "scale": "symmetric",
        }
    }
    assert published_pictures(SimpleNamespace(modules=[SimpleNamespace(constants={"network": "mlp"}, grid=[])])) == {}


@pytest.mark.parametrize("network", ["vit", "timm/nonesuch", "hf/there/is-none", "resnet18"])
def test_of_other_weights_nothing_is_known(network):
    assert published(network, "some/file.pt") == {}


@pytest.mark.parametrize(
    "said, code",
    [
        ({"crop": 0}, "out-of-range"),
        ({"crop": "all"}, "out-of-range"),
        ({"interpolation": "nearest"}, "invalid-choice"),
    ],
)
def test_impossible_values_are_refused(said, code):
    assert errors_of(TorchLearner, **said) == [(code, "")]
