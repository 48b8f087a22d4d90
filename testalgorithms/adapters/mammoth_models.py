"""`contract: mammoth`: `url` is the file of a model in a checkout of Mammoth, `name` its class, a ContinualModel.

Hyperparameters are the arguments of the model's parser, lr, batch_size and n_epochs among them, and two of ours:
backbone: "file:Name" in the checkout's folder backbone, called with the numbers of inputs and classes that it takes.
n_tasks: how many rounds there will be, for models that ask (`N_TASKS`), which the rules of an exam hide.

A round is a task: begin_task, n_epochs passes of observe, end_task. Labels are numbered in the order in which classes
were taught, as in Mammoth. Images are stored as uint8, as in Mammoth, and passed as float32 from 0 to 1, without
transforms. Answers are the largest outputs of the model's forward among all classes. Models that take the label of a
task in forward need an exam that shows it.

It runs in interpreters that have no ianvs, and imports nothing of it. Tested with commit 7ab9db9; the names in
e75a491 were taken from its code.
"""

import copyreg
import importlib
import importlib.util
import inspect
import random
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

_spec = importlib.util.spec_from_file_location("imported_later", Path(__file__).with_name("imported_later.py"))
_later = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_later)

OF_ALL = {"lr": inspect.Parameter.empty, "batch_size": inspect.Parameter.empty, "n_epochs": inspect.Parameter.empty}
OF_OPTIMIZERS = {"optimizer": "sgd", "optim_wd": 0.0, "optim_mom": 0.0, "optim_nesterov": False}
"""For versions in which a model can choose one."""

OURS = {"backbone": "MNISTMLP:MNISTMLP", "n_tasks": None}
ASIDE = {"dataset": "exam", "model": "", "seed": None, "notes": None, "csv_log": False, "tensorboard": False}
ASIDE.update({"validation": False, "label_perc": 1, "nowand": True, "debug_mode": False})
"""Further arguments of Mammoth's own program."""


class ExamRuleError(Exception):
    """As ianvs raises it."""


class PluginError(Exception):
    """As ianvs raises it."""


class Hidden:
    """A number that the rules of an exam hide: computing with it raises an error."""

    def _refuse_use(self, *_):
        frame = sys._getframe(1)
        where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        raise ExamRuleError(
            f"{where} asks for the number of tasks, which the rules of an exam hide. If the model may know it, say so "
            "by the hyperparameter n_tasks; its row will tell."
        )

    __index__ = __int__ = __float__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = _refuse_use
    __rfloordiv__ = __add__ = __radd__ = __sub__ = __rsub__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = (
        _refuse_use
    )
    __ge__ = _refuse_use


class Rows(Dataset):
    """Samples of a task in the form for models: (input, label, input without augmentation, what they have added)."""

    not_aug_transform = None
    extra_return_fields = ()

    def __init__(self, data, targets):
        """data: uint8 (N, H, W, C), or float32 (N, D). targets: int64 (N,)."""
        self.data, self.targets = data, targets

    def __len__(self):
        return len(self.targets)

    @property
    def added(self):
        return self.extra_return_fields or (("logits",) if hasattr(self, "logits") else ())

    def __getitem__(self, index):
        x = numbers(self.data[index : index + 1])[0]
        return (x, int(self.targets[index]), x, *(getattr(self, name)[index] for name in self.added))


class Exam:
    """The part of a benchmark that models can see.

    Order: classes as they were taught, then the others; sizes: of tasks so far.
    """

    NAME, TRANSFORM, TEST_TRANSFORM, SETTING = "exam", None, None, "class-il"

    def __init__(self, num_classes, n_tasks, batch_size):
        self.order, self.sizes, self.n_tasks, self.batch_size = list(range(num_classes)), [], n_tasks, batch_size
        self.N_CLASSES, self.train_loader, self.rows, self.i = num_classes, None, None, 0

    def begin(self, data, labels):
        """Set the data of a task, whose labels are class indices.

        Returns a warning if models do not support them, or "".
        """
        taught, now = self.order[: self.i], sorted(set(labels.tolist()))
        new = [label for label in now if label not in taught]
        self.order = taught + new + [label for label in range(self.N_CLASSES) if label not in (*taught, *new)]
        self.sizes, self.i = [*self.sizes, len(new)], self.i + len(new)
        if len(self.sizes) == 1 and self.i == self.N_CLASSES:
            self.SETTING = "domain-il"
        self.rows = Rows(data, np.argsort(self.order)[labels])
        self.train_loader = self.loader(Rows(*vars(self.rows).values()), self.batch_size)
        if self.SETTING == "class-il" and not len(new) == len(now) == self.sizes[0]:
            return f"rounds that do not bring {self.sizes[0]} new classes each"
        return ""

    def loader(self, rows, size):
        return DataLoader(rows, batch_size=size, shuffle=True)

    def not_aug_dataloader(self, batch_size):
        """Return a loader of the original data of the task.

        Models may have added old samples to their training data.
        """
        return self.loader(self.rows, batch_size)

    @property
    def N_TASKS(self):
        return Hidden() if self.n_tasks is None else self.n_tasks

    @property
    def N_CLASSES_PER_TASK(self):
        return self.sizes[0]

    def get_offsets(self, task=None):
        task = len(self.sizes) - 1 if task is None else task
        return sum(self.sizes[:task]), sum(self.sizes[: task + 1])

    def get_transform(self):
        return None

    get_normalization_transform = get_transform

    def get_denormalization_transform(self):
        return as_it_is

    def get_loss(self):
        return torch.nn.functional.cross_entropy


class Method:
    """A model of Mammoth, with the methods that an exam calls."""

    kind = None
    memory = ()
    remark = ""

    def __init__(self, **hyperparameters):
        given = {name: parameter.default for name, parameter in inspect.signature(type(self)).parameters.items()}
        self._args = Namespace(**{**ASIDE, "model": self.kind.NAME, **given, **hyperparameters})
        self._seed = random.getrandbits(63)  # its initial weights do not depend on when it is created
        self._model = None

    def train(self, train_data, num_classes, device, passes=None, **context):
        args, kind = self._args, self.kind
        if passes is not None and args.n_epochs > passes:
            raise ExamRuleError(f"n_epochs is {args.n_epochs}, and the rules of this exam allow {passes} passes.")
        exam = self._args.exam if self._model is not None else Exam(num_classes, args.n_tasks, args.batch_size)
        odd = exam.begin(stored(train_data.x), np.array(train_data.y))
        if (odd or exam.SETTING not in kind.COMPATIBILITY) and "general-continual" not in kind.COMPATIBILITY:
            raise PluginError(f"{kind.__name__} is for {', '.join(kind.COMPATIBILITY)}, not for {odd or exam.SETTING}.")
        if self._model is None:
            args.exam = exam
            self._model = self._built(exam, exam.train_loader.dataset[0][0].numel(), device)
        self._learn(exam)
        exam.train_loader = exam.rows = None  # its data are not available after the round

    def _learn(self, exam):
        model, device = self._model, self._model.device
        model.net.train()
        call(model, "begin_task", exam)
        for epoch in range(self._args.n_epochs):
            call(model, "begin_epoch", epoch, exam)
            rows = exam.train_loader.dataset
            for batch in exam.train_loader:
                *first, extra = *(part.to(device) for part in batch[:3]), dict(zip(rows.added, batch[3:]))
                if hasattr(model, "meta_observe"):
                    model.meta_observe(*first, epoch=epoch, **extra)
                else:
                    model.observe(*first, **extra)
            call(model, "end_epoch", epoch, exam)
        call(model, "end_task", exam)
        buffers = [buffer for buffer in vars(model).values() if hasattr(buffer, "num_seen_examples")]
        self.memory = range(sum(min(buffer.num_seen_examples, buffer.buffer_size) for buffer in buffers))
        if exam.n_tasks is not None:
            self.remark = f"is told that there are {exam.n_tasks} tasks"

    def _built(self, exam, inputs, device):
        """Return a new model; the global generators are left unchanged."""
        before = random.getstate(), np.random.get_state()
        file, _, name = self._args.backbone.partition(":")
        make = getattr(importlib.import_module("backbone." + file), name)
        sizes = dict.fromkeys(("output_size", "num_classes", "nclasses"), exam.N_CLASSES)
        sizes["input_size"] = inputs
        for module in ("utils.conf", "models.utils.continual_model"):
            sys.modules[module].get_device = lambda *_: torch.device(device)
        with torch.random.fork_rng():
            random.seed(self._seed)
            np.random.seed(self._seed % 2**32)
            torch.manual_seed(self._seed)
            takes = inspect.signature(make).parameters
            net = make(**{size: value for size, value in sizes.items() if size in takes}).to(device)
            more = {"dataset": exam} if "dataset" in inspect.signature(self.kind.__init__).parameters else {}
            model = self.kind(net, exam.get_loss(), self._args, None, **more)
        random.setstate(before[0])
        np.random.set_state(before[1])
        model.device = torch.device(device)
        return model.to(device)

    def predict(self, data, num_classes, task_classes=None, task=None, **context):
        outputs = self.scores(data, num_classes, task)
        if task_classes is None:
            return outputs.argmax(1)
        classes = np.array(task_classes)
        return classes[outputs[:, classes].argmax(1)]

    def scores(self, data, num_classes, task=None, **context):
        x, model, options = numbers(stored(data.x)), self._model, {}
        if model is None:  # some can't predict before training (iCaRL has no means), and none has learned anything
            return np.zeros((len(x), num_classes), np.float32)
        if "task_label" in inspect.signature(self.kind.forward).parameters:
            options["task_label"] = task
            if task is None:
                where = (
                    f"{Path(self.kind.forward.__code__.co_filename).name}:{self.kind.forward.__code__.co_firstlineno}"
                )
                raise ExamRuleError(f"{where} takes the label of a sample's task, which the rules of this exam hide.")
        was = model.net.training
        model.net.eval()
        with torch.no_grad():
            logits = torch.cat([model(part.to(model.device), **options).float().cpu() for part in x.split(512)])
        model.net.train(was)
        whole = np.full((len(x), num_classes), -np.inf, np.float32)
        whole[:, self._args.exam.order[: logits.shape[1]]] = logits.numpy()
        return whole

    def save(self, path):
        copyreg.pickle(ModuleType, lambda module: (importlib.import_module, (module.__name__,)))
        torch.save({"args": self._args, "model": self._model, "memory": self.memory, "remark": self.remark}, path)

    def load(self, path):
        held = torch.load(path, weights_only=False)
        self._args, self._model, self.memory, self.remark = (held[key] for key in ("args", "model", "memory", "remark"))


def plugin_class(url, name):
    """Return the plugin class for the model `name` in the file at `url`, a checkout's models/FILE.py."""
    root = Path(url).resolve().parents[1]
    sys.path.insert(0, str(root))
    # These import all models, and all datasets with their requirements, which are not needed here.
    for package, holds in (("models", {}), ("datasets", {"get_dataset": lambda args: args.exam, "NAMES": {}})):
        module = sys.modules[package] = ModuleType(package)
        module.__path__ = [str(root / package)]
        module.__getattr__ = nothing
        vars(module).update(holds)
    with _later.ImportedLater("torchvision"):  # for annotations of transforms, which are not used
        module = importlib.import_module("models." + Path(url).stem)
    kind = getattr(module, name, None)
    if not hasattr(kind, "COMPATIBILITY"):
        raise PluginError(f"{Path(url).name} has no ContinualModel '{name}'.")
    parser = kind.get_parser(ArgumentParser()) if hasattr(kind, "get_parser") else module.get_parser()
    taken = {**OF_ALL, **OURS, **(OF_OPTIMIZERS if hasattr(kind, "get_optimizer") else {})}
    for action in parser._actions:
        if action.default is not SUPPRESS and action.dest not in ASIDE:
            taken[action.dest] = inspect.Parameter.empty if action.required else action.default
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value) for key, value in taken.items()]

    def __init__(self, **hyperparameters):
        Method.__init__(self, **hyperparameters)

    __init__.__signature__ = inspect.Signature([itself, *named])
    return type(name, (Method,), {"__init__": __init__, "kind": kind})


def as_it_is(x):
    return x


def nothing(name):
    """Stand in for a function of a package that is left out; it finds nothing."""
    if name.startswith("__"):
        raise AttributeError(name)
    return list


def call(model, name, *arguments):
    """Call a step that a model may have; in later versions by the method that counts its tasks."""
    step = getattr(model, "meta_" + name, None) or getattr(model, name, None)
    if step is not None:
        step(*arguments)


def stored(x):
    """Return samples as stored by Mammoth's datasets: images (N, H, W, C) as uint8, others (N, ...) as float32."""
    if x.ndim == 4 and x.dtype != np.uint8:
        return np.round(np.asarray(x) * 255).astype(np.uint8)
    return np.array(x, np.uint8 if x.ndim == 4 else np.float32)


def numbers(x):
    """(N, ...) float32, of what is `stored`; images (N, C, H, W) from 0 to 1."""
    values = torch.from_numpy(x)
    return values.permute(0, 3, 1, 2).contiguous().float() / 255 if values.ndim == 4 else values
