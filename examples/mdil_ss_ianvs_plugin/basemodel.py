"""A base model as one writes it for KubeEdge Ianvs: it is given paths of images and of segmentation masks."""

import os

import numpy as np
import torch
from PIL import Image
from sedna.common.class_factory import ClassFactory, ClassType
from sedna.common.config import Context
from torch import nn

__all__ = ["BaseModel"]
os.environ["BACKEND_TYPE"] = "PYTORCH"

CLASSES, IGNORED = 30, 255


def picture(path):
    return torch.from_numpy(np.array(Image.open(path).convert("RGB"))).permute(2, 0, 1).float() / 255


def labels(path):
    return torch.from_numpy(np.array(Image.open(path))).long()


@ClassFactory.register(ClassType.GENERAL, alias="ERFNet")
class BaseModel:
    """Three convolutions in place of ERFNet, so that the example takes seconds."""

    def __init__(self, **kwargs):
        self.learning_rate = kwargs.get("learning_rate", 1e-3)
        self.epochs = kwargs.get("epochs", 1)
        self.batch_size = kwargs.get("batch_size", 10)
        self.model_name = Context.get_parameters("model_name", "model.pth")
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, CLASSES, 1),
        )  # fmt: skip

    def preprocess(self):
        return None

    def train(self, train_data, valid_data=None, **kwargs):
        optimizer = torch.optim.Adam(self.net.parameters(), self.learning_rate)
        for _ in range(self.epochs):
            for i in range(0, len(train_data.x), self.batch_size):
                x = torch.stack([picture(path) for path in train_data.x[i : i + self.batch_size]])
                y = torch.stack([labels(path) for path in train_data.y[i : i + self.batch_size]])
                optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(x), y, ignore_index=IGNORED).backward()
                optimizer.step()
        return self.net

    @torch.no_grad()
    def predict(self, data, **kwargs):
        return {str(path): self.net(picture(path)[None]).argmax(1)[0].numpy() for path in data}

    def evaluate(self, data, model_path, **kwargs):
        self.load(model_path)
        name, metric = kwargs["metric"]
        return {name: metric(data.y, self.predict(data.x))}

    def save(self, model_path=None):
        path = model_path or self.model_name
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        torch.save(self.net.state_dict(), path)
        return path

    def load(self, model_url=None):
        if model_url and os.path.exists(model_url):
            self.net.load_state_dict(torch.load(model_url, weights_only=True))
        return self.net
