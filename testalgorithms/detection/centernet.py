"""A small detector without anchors: objects as points."""

import torch
from torch import nn
from torch.nn.functional import l1_loss, logsigmoid, max_pool2d

from ianvs.testalgorithms.detection.targets import objects
from ianvs.testalgorithms.nets import scene_body

STRIDE = 4
RARE = 0.1  # the probability of an object in an untrained heatmap
PEAKS = 50  # number of answers per image


class CenterNet(nn.Module):
    """(B, 3, H, W) -> maps (B, C + 4, H / 4, W / 4): of each cell a logit per class, width and height, and where in
    the cell the centre lies (Zhou et al. 2019, "Objects as Points", arXiv 1904.07850).

    `scene_body` with these `widths`, and a head of two convolutions.
    """

    def __init__(self, channels, num_classes, widths=(16, 32)):
        super().__init__()
        self.num_classes = num_classes
        self.body, width = scene_body(channels, widths), widths[1]
        last = nn.Conv2d(2 * width, num_classes + 4, 1)
        self.head = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(inplace=True), last)
        with torch.no_grad():
            last.bias[:num_classes] = torch.tensor(RARE / (1 - RARE)).log()

    def forward(self, x):
        return self.head(self.body(x))

    def loss(self, maps, rows, classes):
        """Eq. 1 to 4 of the paper, a scalar: of the heatmaps of `classes` (n,) and of the boxes in rows (B, K, 5).

        Other heatmaps learn nothing. Sizes are counted in logarithms of cells.
        """
        rows, held = objects(rows)
        count = held.sum().clamp_min(1)
        heat = self.heatmaps(rows, held, maps.shape[2:])[:, classes]
        logits = maps[:, classes]
        p = logits.sigmoid()
        peak, other = (1 - p).square() * logsigmoid(logits), (1 - heat).pow(4) * p.square() * logsigmoid(-logits)
        focal = -torch.where(heat == 1, peak, other).sum()
        picture, place = held.nonzero(as_tuple=True)
        boxes = rows[picture, place, :4]
        column, row = self.cells(boxes, maps.shape[2:])
        predicted = maps[picture, self.num_classes :, row, column]
        return (focal + l1_loss(predicted, self.shapes(boxes, column, row), reduction="sum")) / count

    def heatmaps(self, rows, held, size):
        """Return (B, C, h, w): 1 in the cell of an object's centre, decreasing around it as a Gaussian of its size."""
        column, row = self.cells(rows[..., :4], size)
        spread = (rows[..., 2:4] - rows[..., :2]).clamp_min(1e-3) / (6 * STRIDE)
        steps = [torch.arange(n, device=rows.device) for n in size]
        away_x = (steps[1] - column[..., None]) / spread[..., :1]
        away_y = (steps[0] - row[..., None]) / spread[..., 1:]
        bumps = (
            torch.exp(-0.5 * (away_x.square()[:, :, None, :] + away_y.square()[:, :, :, None])) * held[..., None, None]
        )
        index = rows[..., 4].long().clamp_min(0)[..., None, None].expand_as(bumps)
        return bumps.new_zeros(len(rows), self.num_classes, *size).scatter_reduce_(1, index, bumps, "amax")

    @staticmethod
    def cells(boxes, size):
        """Return column and row (...,) of the cells that contain the centres of boxes (..., 4)."""
        centre = ((boxes[..., :2] + boxes[..., 2:4]) / (2 * STRIDE)).floor().long()
        return centre[..., 0].clamp(0, size[1] - 1), centre[..., 1].clamp(0, size[0] - 1)

    @staticmethod
    def shapes(boxes, column, row):
        """Return the targets of the last four maps in these cells, (n, 4)."""
        size = (boxes[:, 2:] - boxes[:, :2]).clamp_min(1e-3) / STRIDE
        centre = (boxes[:, :2] + boxes[:, 2:]) / (2 * STRIDE)
        return torch.cat([size.log(), centre - torch.stack([column, row], 1)], 1)

    def answers(self, maps, classes):
        """Return (B, PEAKS, 6): x1 y1 x2 y2 score label of the highest local maxima of the heatmaps of `classes`
        (n,).
        """
        p = maps[:, classes].sigmoid()
        p = torch.where(max_pool2d(p, 3, 1, 1) == p, p, 0.0).flatten(1)
        score, place = p.topk(min(PEAKS, p.shape[1]))
        height, width = maps.shape[2:]
        cell = place % (height * width)
        column, row = cell % width, cell // width
        predicted = maps[:, self.num_classes :].flatten(2).gather(2, cell[:, None].expand(-1, 4, -1)).transpose(1, 2)
        half = predicted[..., :2].clamp_max(8.0).exp() / 2
        centre = torch.stack([column, row], -1) + predicted[..., 2:]
        boxes = torch.cat([centre - half, centre + half], -1) * STRIDE
        label = classes[place // (height * width)]
        return torch.cat([boxes, score[..., None], label[..., None].to(boxes.dtype)], -1)
