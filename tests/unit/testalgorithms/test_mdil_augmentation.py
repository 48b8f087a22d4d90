"""Flips and shifts of whole batches against one picture at a time, with Pillow."""

import pytest
import torch
from PIL import Image, ImageOps

from ianvs.testalgorithms.mdil_ss import scene_augmentation
from ianvs.testalgorithms.mdil_ss.scene_augmentation import draw_moves, move
from tests.errors import errors_of

IGNORE, HEIGHT, WIDTH = 9, 6, 8
EVERY_MOVE = torch.tensor([(f, r, d) for f in (0, 1) for r in range(-2, 3) for d in range(-2, 3)])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(1, 256, (len(EVERY_MOVE), 3, HEIGHT, WIDTH), generator=generator, dtype=torch.uint8)
    y = torch.randint(1, IGNORE, (len(EVERY_MOVE), HEIGHT, WIDTH), generator=generator, dtype=torch.uint8)
    return x, y


def with_pillow(array, flipped, right, down, fill):
    """Widen the left and upper border by a shift, which cuts them when it is negative, then cut to the old size.

    Pillow fills with 0 what a cut takes from beyond the picture: that is where the quirk comes from.
    """
    picture = Image.fromarray(array.numpy())
    if flipped:
        picture = ImageOps.mirror(picture)
    wider = Image.new("L", (WIDTH + right, HEIGHT + down), fill)
    wider.paste(picture, (right, down))
    return torch.tensor(list(wider.crop((0, 0, WIDTH, HEIGHT)).tobytes()), dtype=torch.uint8).view(HEIGHT, WIDTH)


@pytest.mark.parametrize("by", ["_by_slices", "_by_index"])
def test_the_quirk_is_what_pillow_does(batch, by):
    x, y = batch
    moved_x, moved_y = getattr(scene_augmentation, by)(x, y, EVERY_MOVE, IGNORE, 0)
    for i, (flipped, right, down) in enumerate(EVERY_MOVE.tolist()):
        assert torch.equal(moved_y[i], with_pillow(y[i], flipped, right, down, IGNORE)), (flipped, right, down)
        for channel in range(3):
            assert torch.equal(moved_x[i, channel], with_pillow(x[i, channel], flipped, right, down, 0))


@pytest.mark.parametrize("by", ["_by_slices", "_by_index"])
def test_by_default_every_uncovered_label_is_ignored(batch, by):
    x, y = batch
    moved_x, moved_y = getattr(scene_augmentation, by)(x, y, EVERY_MOVE, IGNORE, IGNORE)
    for i, (flipped, right, down) in enumerate(EVERY_MOVE.tolist()):
        for row in range(HEIGHT):
            for column in range(WIDTH):
                r, c = row - down, column - right
                inside = 0 <= r < HEIGHT and 0 <= c < WIDTH
                c = WIDTH - 1 - c if flipped else c
                assert moved_y[i, row, column] == (y[i, r, c] if inside else IGNORE)
                assert moved_x[i, 1, row, column] == (x[i, 1, r, c] if inside else 0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_labels_stay_with_their_pixels_in_every_layout(batch, dtype, layout):
    x, y = batch
    x[:, 0] = y  # the picture shows its labels
    before = x.clone(), y.clone()
    moved_x, moved_y = move(x.to(dtype).to(memory_format=layout), y.long(), EVERY_MOVE, ignore=IGNORE)
    covered = moved_y != IGNORE
    assert (moved_x.dtype, moved_y.dtype) == (dtype, torch.int64)
    assert torch.equal(moved_x[:, 0][covered].long(), moved_y[covered])
    assert not moved_x[:, 0][~covered].any()
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])  # the data of the round is left as it is


def test_the_switch_decides_about_the_far_border(batch):
    x, y = batch
    up_and_left = torch.tensor([[0, -1, -2]]).expand(len(y), 3)
    ours = move(x, y, up_and_left, ignore=IGNORE)[1]
    theirs = move(x, y, up_and_left, ignore=IGNORE, shift_border="reference_quirk")[1]
    assert (ours[:, -2:] == IGNORE).all() and (ours[:, :, -1] == IGNORE).all()
    assert not theirs[:, -2:].any() and not theirs[:, :, -1].any()
    assert torch.equal(ours[:, :-2, :-1], theirs[:, :-2, :-1])
    assert errors_of(move, x, y, up_and_left, ignore=IGNORE, shift_border="ignored") == [("invalid-choice", "")]


def test_moves_are_uniform_and_of_their_generator():
    moves = draw_moves(20_000, torch.Generator().manual_seed(3))
    assert torch.equal(moves, draw_moves(20_000, torch.Generator().manual_seed(3)))
    assert not torch.equal(moves, draw_moves(20_000, torch.Generator().manual_seed(4)))
    assert moves[:, 0].double().mean().item() == pytest.approx(0.5, abs=0.02)
    for axis in (1, 2):
        values, counts = moves[:, axis].unique(return_counts=True)
        assert values.tolist() == [-2, -1, 0, 1, 2]
        assert (counts / 20_000).tolist() == pytest.approx([0.2] * 5, abs=0.02)
    corner = torch.corrcoef(moves.double().T)
    assert (corner - torch.eye(3, dtype=torch.float64)).abs().max() < 0.03


def test_no_flip_and_no_shift_leave_a_batch_as_it_is(batch):
    x, y = batch
    moves = draw_moves(len(y), torch.Generator().manual_seed(0), flip=0.0, max_shift=0)
    moved_x, moved_y = move(x, y, moves, ignore=IGNORE)
    assert torch.equal(moved_x, x) and torch.equal(moved_y, y)
