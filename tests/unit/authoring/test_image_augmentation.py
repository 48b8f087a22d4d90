"""`augment` and `preprocess` as mappings: the same numbers as torchvision, on stored images, in training alone."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torchvision.transforms import v2

from ianvs.authoring import TorchLearner
from ianvs.authoring.image_transforms import ImageAugmentation, ImageTransform
from ianvs.authoring.preprocessing import preprocess_options
from ianvs.authoring.randomness import seeded
from tests.errors import errors_of
from tests.unit.authoring.test_learner import CONTEXT, Vectors, flat, taught

PAPERS = {
    "vit": ({"random_resized_crop": [0.05, 1], "flip": 0.5}, (16, 16)),
    "pycil": ({"flip": 0.5, "jitter": 63 / 255, "pad_crop": 4}, (8, 9)),
}


def images(count=5, size=(8, 9)):
    return torch.randint(256, (count, 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def naive(options, x, size, draws):
    """The same chain, written down image by image, from the same stream of random numbers."""
    with seeded(int(torch.randint(2**62, (1,), generator=draws))):
        if scale := options.get("random_resized_crop"):
            x = torch.stack([v2.RandomResizedCrop(size, scale=scale, antialias=True)(image) for image in x])
        if (width := options.get("pad_crop")) is not None:
            tops, lefts = torch.randint(2 * width + 1, (2, len(x), 1)).squeeze(-1).tolist()
            padded = v2.functional.pad(x, [width])
            cut = zip(padded, tops, lefts, strict=True)
            x = torch.stack([image[:, i : i + x.shape[2], j : j + x.shape[3]] for image, i, j in cut])
        if (probability := options.get("flip")) is not None:
            drawn = torch.rand(len(x))
            x = torch.stack([image.flip(-1) if p < probability else image for image, p in zip(x, drawn, strict=True)])
        if (brightness := options.get("jitter")) is not None:
            x = torch.stack([v2.ColorJitter(brightness=brightness)(image) for image in x])
    return x


@pytest.mark.parametrize("paper", PAPERS)
def test_a_mapping_has_the_numbers_of_torchvision_in_a_fixed_order(paper):
    options, size = PAPERS[paper]
    augment = ImageAugmentation(dict(reversed(options.items())))
    x = images()
    wanted = naive(options, x, size, generator(7))
    torch.testing.assert_close(augment(x, generator(7), size), wanted, rtol=0, atol=0)
    assert augment(x, generator(8), size).ne(wanted).any()
    before = torch.get_rng_state()
    augment(x, generator(7), size)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("options", [{"rotate": 10}, {"auto": "cifar10"}, {"auto": "rand"}, {"erase": 1.0}])
def test_other_transforms_change_images_and_keep_their_form(options):
    changed = ImageAugmentation(options)(images(), generator())
    assert (changed.dtype, changed.shape) == (torch.uint8, images().shape)
    assert changed.ne(images()).any()


def test_a_new_transform_is_one_class():
    class Invert(ImageTransform):
        key, order = "invert", 9

        def build(self, size):
            return lambda x: 255 - x

    assert torch.equal(ImageAugmentation({"invert": True})(images(), generator()), 255 - images())


def test_a_step_gets_augmented_stored_images_and_a_test_does_not():
    """One full-batch step of a linear network, against autograd on images that are augmented and scaled by hand."""
    data = Vectors(dtype=np.uint8, shape=(3, 8, 9))
    options = {"network": "linear", "epochs": 1, "batch_size": 40, "momentum": 0.0, "learning_rate": 0.1}
    augment = {"random_resized_crop": [0.3, 1], "flip": 0.5}
    learner = TorchLearner(augment=augment, preprocess={"resize": 6, "crop": 6, "scale": "unit"}, **options)
    seen = []
    learner.loss = lambda batch: seen.append(batch.x) or cross_entropy(batch.logits, batch.y)
    taught(learner, data)
    assert seen[0].shape[1:] == (3, 6, 6) and 0 <= seen[0].min() <= seen[0].max() <= 1
    test = Vectors(dtype=np.uint8, shape=(3, 8, 9), labelled=False)
    plain = learner.prepare(test.tensors("cpu").permute(0, 1, 2, 3))
    wanted = v2.functional.center_crop(v2.functional.resize(test.tensors("cpu").float(), 6, antialias=True), [6, 6])
    torch.testing.assert_close(plain, wanted / 255, rtol=0, atol=2e-3)
    np.testing.assert_array_equal(learner.predict(test, **CONTEXT), learner.predict(test, **CONTEXT))
    again = taught(TorchLearner(augment=augment, preprocess={"resize": 6, "crop": 6, "scale": "unit"}, **options), data)
    assert torch.equal(flat(learner), flat(again))


def test_preprocess_is_another_way_to_write_the_single_options():
    free = dict.fromkeys(("picture_size", "crop", "interpolation", "scale"))
    given = {"resize": 256, "crop": 224, "interpolation": "bicubic", "scale": "half"}
    found = preprocess_options(given, free)
    assert found == {"picture_size": 224, "crop": 0.875, "interpolation": "bicubic", "scale": "half"}
    x = images().float()
    half, symmetric = (TorchLearner(preprocess={"scale": "half"}), TorchLearner(scale="symmetric"))
    assert torch.equal(half.scaling(x.clone(), True), symmetric.scaling(x.clone(), True))


def test_what_makes_no_sense_is_refused():
    assert errors_of(TorchLearner, augment={"flop": 0.5}) == [("invalid-choice", "")]
    assert errors_of(TorchLearner, augment={"flip": 2}) == [("refused-arguments", "")]
    assert errors_of(TorchLearner, augment={"random_resized_crop": [1]}) == [("refused-arguments", "")]
    assert errors_of(TorchLearner, augment={"auto": "cifar11"}) == [("invalid-choice", "")]
    assert errors_of(taught, TorchLearner(augment={"flip": 0.5})) == [("refused-arguments", "")]
    assert errors_of(TorchLearner, preprocess={"size": 3}) == [("invalid-choice", "")]
    assert errors_of(TorchLearner, preprocess={"resize": 0}) == [("out-of-range", "")]
    assert errors_of(TorchLearner, preprocess={"resize": 8, "crop": 9}) == [("out-of-range", "")]
    assert errors_of(TorchLearner, scale="unit", preprocess={"scale": "unit"}) == [("conflicting-keys", "")]
