"""`contract: avalanche`: `url` names a function that returns a strategy of Avalanche 0.6.

The function gets `num_classes`, `device` and, if it names it, `shape` (of a sample as a network sees it, (C, H, W)),
and the hyperparameters. A round becomes an experience, which is given to `strategy.train`; answers are the largest
outputs of the strategy's model by its own `eval_epoch`. Images come as float32 from 0 to 1; there are no transforms.
The label of a task is 0 unless the exam's rules show it.

It runs in interpreters that have no ianvs, too, and imports nothing of it.
"""

import importlib.util
import inspect
import io
import pickle
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

_spec = importlib.util.spec_from_file_location("imported_later", Path(__file__).with_name("imported_later.py"))
_later = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_later)

SELDOM = ("torchmetrics", "torchvision.models", "torchvision.ops", "torch.utils.tensorboard")
SELDOM += ("wandb", "matplotlib", "pytorchcv", "GPUtil", "gdown")

with _later.ImportedLater(*SELDOM):
    from avalanche.benchmarks.scenarios.dataset_scenario import DatasetExperience
    from avalanche.benchmarks.utils import DataAttribute, TaskAwareSupervisedClassificationDataset
    from avalanche.benchmarks.utils.flat_data import ConstantSequence
    from avalanche.models import MultiTaskModule
    from avalanche.training.plugins import EvaluationPlugin
    from avalanche.training.supervised import Naive  # noqa: F401 - with all that strategies need

GIVEN = ("num_classes", "device", "shape")


class ExamRuleError(Exception):
    """As ianvs raises it."""


class Rows(torch.utils.data.Dataset):
    """(x, y) of samples: (N, ...) float32 and (N,) int64."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], int(self.y[index])


class _Memory:
    """The old samples that the strategy's plugins hold, each counted once."""

    def __init__(self, strategy):
        buffers = [getattr(part, "storage_policy", None) for part in (strategy, *strategy.plugins)]
        held = {id(part): part.buffer for part in buffers if hasattr(part, "buffer")}
        self._count = sum(map(len, held.values()))
        for plugin in strategy.plugins:
            for name in ("memory_x", "x_memory", "buffers"):
                samples = getattr(plugin, name, None) or ()
                self._count += sum(map(len, samples.values() if isinstance(samples, dict) else samples))

    def __len__(self):
        return self._count


class Method:
    """A strategy, with the methods that an exam calls."""

    def __init__(self, make, hyperparameters):
        self._make, self._hyperparameters = make, hyperparameters
        self._seed = random.getrandbits(63)  # its initial weights do not depend on when it is created
        self._strategy, self._facts, self._taught = None, None, []

    @property
    def memory(self):
        return () if self._strategy is None else _Memory(self._strategy)

    def train(self, train_data, num_classes, device, task=None, passes=None, **context):
        strategy = self._started(num_classes, device, train_data)
        if passes is not None and strategy.train_epochs > passes:
            raise ExamRuleError(
                f"train_epochs is {strategy.train_epochs}, and the rules of this exam allow {passes} passes."
            )
        heads = [type(part).__name__ for part in strategy.model.modules() if isinstance(part, MultiTaskModule)]
        if task is None and heads:
            where = f"{self._make.__name__}'s {heads[-1]}"
            raise ExamRuleError(f"{where} takes the label of a sample's task, which the rules of this exam hide.")
        x, y = _numbers(train_data.x), torch.from_numpy(np.asarray(train_data.y, np.int64))
        self._taught.append(sorted(set(y.tolist())))
        for plugin in _drawing(strategy):  # after an interruption, it draws as in an uninterrupted case
            plugin.buffer_dliter = iter(plugin.buffer_dataloader)
        strategy.train(self._experience(x, y, 0 if task is None else task), eval_streams=[])

    def predict(self, data, num_classes, device, task=None, task_classes=None, **context):
        outputs = self.scores(data, num_classes, device, task=task)
        if task_classes is not None:
            classes = np.array(task_classes)
            return classes[outputs[:, classes].argmax(1)]
        return outputs.argmax(1)

    def scores(self, data, num_classes, device, task=None, **context):
        strategy, x = self._started(num_classes, device, data), _numbers(data.x)
        if not self._taught:  # some can't predict before training (iCaRL has no means), and none has learned anything
            return np.zeros((len(x), num_classes), np.float32)
        logits = []
        strategy.model.eval()
        strategy.model.to(strategy.device)
        strategy.is_training = False
        strategy.experience = self._experience(x[:0], torch.zeros(0, dtype=torch.int64), 0)
        with torch.no_grad():
            for part in x.split(max(1, strategy.eval_mb_size)):
                labels = torch.full((len(part),), 0 if task is None else task)
                strategy.mbatch = [part, torch.zeros(len(part), dtype=torch.int64), labels]
                strategy._unpack_minibatch()
                logits.append(strategy.forward().float().cpu())
        strategy._eval_cleanup()
        outputs = torch.cat(logits)
        whole = torch.full((len(outputs), num_classes), -torch.inf)  # a head may grow with the classes
        whole[:, : outputs.shape[1]] = outputs[:, :num_classes]
        return whole.numpy()

    def save(self, path):
        strategy, state = self._strategy, None
        if strategy is not None:
            attributes = {name: value for name, value in vars(strategy).items() if name not in ("evaluator", "plugins")}
            plugins = [None if isinstance(entry, EvaluationPlugin) else entry for entry in strategy.plugins]
            state = {"strategy": attributes, "plugins": plugins}
        held = {"facts": self._facts, "taught": self._taught, "state": state}
        for plugin in _drawing(strategy):
            plugin.buffer_dliter = ()  # can't be pickled; `train` begins a new one
        torch.save({"author": self._make.__module__, "held": _dumped(held)}, path)

    def load(self, path):
        read = torch.load(path, weights_only=True)
        held = _loaded(read["held"], read["author"], self._make.__module__)
        self._facts, self._taught, self._strategy = held["facts"], held["taught"], None
        if held["state"] is not None:
            strategy = self._built()
            evaluators = [entry for entry in strategy.plugins if isinstance(entry, EvaluationPlugin)]
            vars(strategy).update(held["state"]["strategy"])
            strategy.plugins = [evaluators.pop(0) if entry is None else entry for entry in held["state"]["plugins"]]
            self._strategy = strategy

    def _started(self, num_classes, device, data):
        if self._strategy is None:
            x = data.x[:1]
            self._facts = {"num_classes": num_classes, "device": device, "shape": tuple(_numbers(x).shape[1:])}
            self._strategy = self._built()
        return self._strategy

    def _built(self):
        """Return a new strategy; the global generators are left unchanged."""
        before = random.getstate(), np.random.get_state()
        takes = inspect.signature(self._make).parameters
        given = {name: value for name, value in self._facts.items() if name in takes}
        with torch.random.fork_rng():
            random.seed(self._seed)
            np.random.seed(self._seed % 2**32)
            torch.manual_seed(self._seed)
            strategy = self._make(**given, **self._hyperparameters)
        random.setstate(before[0])
        np.random.set_state(before[1])
        return strategy

    def _experience(self, x, y, task):
        attributes = [
            DataAttribute(y.tolist(), "targets"),
            # The type that Avalanche's own memories use: a list can't be joined to theirs.
            DataAttribute(ConstantSequence(task, len(y)), "targets_task_labels", use_in_getitem=True),
        ]
        experience = DatasetExperience(
            dataset=TaskAwareSupervisedClassificationDataset([Rows(x, y)], data_attributes=attributes)
        )
        now = sorted(set(y.tolist()))
        before = {label for several in self._taught[:-1] for label in several}
        experience.current_experience = len(self._taught) - 1
        experience.classes_in_this_experience, experience.previous_classes = now, before
        experience.classes_seen_so_far = before | set(now)
        experience.task_label, experience.task_labels = task, [task]
        # The benchmark only has the learned data and the number of classes, which iCaRL needs.
        order = [label for several in self._taught for label in several]
        left = [label for label in range(self._facts["num_classes"]) if label not in order]
        sizes = [*map(len, self._taught), len(left)]
        experience._benchmark = SimpleNamespace(n_classes_per_exp=sizes, classes_order=order + left)
        experience.__class__ = _Experience
        return experience


class _Experience(DatasetExperience):
    """An experience whose benchmark reports what was learned."""

    @property
    def benchmark(self):
        return self._benchmark


def adapted(make):
    """Return a plugin's class whose constructor takes the arguments of `make` besides those of an exam."""
    takes = [parameter for parameter in inspect.signature(make).parameters.values() if parameter.name not in GIVEN]

    def __init__(self, **hyperparameters):
        Method.__init__(self, make, hyperparameters)

    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([itself, *takes])
    return type(make.__name__, (Method,), {"__init__": __init__, "__module__": make.__module__})


def _drawing(strategy):
    """Return the plugins that draw old samples from an iterator that continues from round to round (A-GEM)."""
    return [
        plugin for plugin in getattr(strategy, "plugins", ()) if getattr(plugin, "buffer_dataloader", None) is not None
    ]


def _numbers(x):
    """(N, ...) float32; images (N, C, H, W) from 0 to 1."""
    values = torch.from_numpy(np.array(x))
    if values.ndim == 4:
        values = values.permute(0, 3, 1, 2).contiguous()
    return values.float() / 255 if values.dtype == torch.uint8 else values.float()


def _dumped(held):
    file = io.BytesIO()
    pickle.Pickler(file, protocol=4).dump(held)
    return file.getvalue()


def _loaded(text, author, now):
    """Return the unpickled object.

    Author: the name of the author's module when it was saved; now: its name in this process.
    """

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            return super().find_class(now if module == author else module, name)

    return Reader(io.BytesIO(text)).load()
