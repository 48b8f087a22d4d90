"""`contract: pilot`: `url` is a file in the folder models of a checkout of LAMDA-PILOT, `name` its class, `Learner`.

Hyperparameters are the keys of the checkout's json files for this model (exps), and these of ours:
config: which of those files holds. dataset, of the file or said beside it, names PILOT's transforms; "plain" has none:
images are from 0 to 1, and of picture_size, if that is given.
backbone: "NAME key=value ..." is the network of timm that is made in place of the one asked for; NAME may be left out.
weights: a file with the state_dict that pre-trained networks begin with; "none" begins with random ones.
answers: cnn, by the network, or nme, by the nearest mean of exemplars.
n_tasks, increment: how many rounds there will be and how many classes later ones bring, for models that ask.
blank_tests: for models that look at labels when they answer, or at test samples while they learn, which is refused
without it: labels are -1, and there is one black test image.

A round is a task, of classes that were not taught before: incremental_train, the answers, and after_task when the next
one begins. Data are loaded in the learner's own process. It runs in interpreters that have no ianvs, and imports
nothing of it. Tried with commit 5240714 and timm 0.6.13.
"""

import importlib
import inspect
import json
import random
import sys
from pathlib import Path
from types import MethodType

import numpy as np
import timm
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

OURS = {"config": None, "picture_size": None, "backbone": "", "weights": None, "answers": "cnn"}
OURS.update({"n_tasks": None, "increment": None, "blank_tests": False})
ASIDE = ("prefix", "shuffle", "init_cls", "increment", "model_name", "device", "seed", "lambda")
"""Keys of PILOT's files that an exam sets or hides, and one that can't be a parameter's name."""
PACKAGES = ("models", "utils", "backbone")
UNKNOWING = "If it does without, say `blank_tests: true`; its row will tell."
of_timm = timm.create_model


class ExamRuleError(Exception):
    """As ianvs raises it."""


class PluginError(Exception):
    """As ianvs raises it."""


class Hidden:
    """A value that the rules of an exam hide: computing with it raises an error."""

    def __init__(self, fact, remedy):
        self.fact, self.remedy = fact, remedy

    def refuse_use(self, *_):
        refuse(f"asks for {self.fact}, which the rules of an exam hide. {self.remedy}")

    __hash__ = None


OPERATORS = "index int float mul rmul truediv rtruediv floordiv rfloordiv add radd sub rsub mod rmod lt le gt ge eq ne"
for operator in (*OPERATORS.split(), "iter", "getitem"):
    setattr(Hidden, f"__{operator}__", Hidden.refuse_use)


class Labels(Hidden):
    """Labels of test samples, which may be passed on but not read."""

    def __init__(self, count):
        super().__init__("the labels of test samples", UNKNOWING)
        self.count = count

    def __len__(self):
        return self.count

    def cpu(self):
        return self

    def numpy(self):
        return np.full(self.count, -1)


class Unseen(Dataset):
    """Placeholder for test data, on which models evaluate themselves during training."""

    def __getitem__(self, index):
        refuse("asks for test samples, which a learner does not see. " + UNKNOWING)

    def __len__(self):
        return self[0]


class Loader(DataLoader):
    """PILOT's loaders, without worker processes; counts the passes over a round."""

    def __init__(self, dataset, *arguments, **named):
        super().__init__(dataset, *arguments, **{**named, "num_workers": 0, "pin_memory": False})

    def __iter__(self):
        exam = getattr(self.dataset, "exam", None)
        if exam is not None:
            exam.passes += 1
            if exam.passes > (exam.allowed or exam.passes):
                refuse(f"begins pass {exam.passes}, and the rules of this exam allow {exam.allowed}.")
        return super().__iter__()


class Exam:
    """Replacement for a DataManager, with the same methods. order: classes taught, then the others."""

    use_path, theirs = False, None

    def __init__(self, num_classes, args):
        self.args, self.dataset_name, self.nb_classes, self.nb_tasks = (
            args,
            args["dataset"],
            num_classes,
            args["nb_tasks"],
        )
        self.order, self.sizes, self.passes, self.allowed = list(range(num_classes)), [], 0, None
        if self.dataset_name == "plain":
            size = args["picture_size"]
            self._train_trsf = self._test_trsf = [] if size is None else [transforms.Resize((size, size))]
            self._common_trsf = [transforms.ToTensor()]
        else:
            data = self.theirs._get_idata(self.dataset_name, args)
            self._train_trsf, self._test_trsf, self._common_trsf = data.train_trsf, data.test_trsf, data.common_trsf
        self._train_data = self._train_targets = np.zeros(0, np.uint8)

    def begin(self, data, labels, allowed):
        """Set the data of a task, whose labels are class indices; at most `allowed` passes over them."""
        taught, new = self.order[: sum(self.sizes)], sorted(set(labels.tolist()))
        if set(new) & set(taught):
            raise PluginError("LAMDA-PILOT's methods are for rounds of new classes, and this one brings a taught one.")
        rest = [label for label in range(self.nb_classes) if label not in (*taught, *new)]
        self.order, self.sizes = taught + new + rest, [*self.sizes, len(new)]
        self._train_data, self._train_targets = data, np.argsort(self.order)[labels]
        self.passes, self.allowed = 0, allowed

    def get_dataset(self, indices, source, mode, *arguments, **named):
        if source != "train" and not self.args["blank_tests"]:
            return Unseen()
        if source != "train":
            indices, named = [], {**named, "appendent": (np.zeros_like(self._train_data[:1]), np.array([-1]))}
        if set(indices) - set(self._train_targets.tolist()):
            refuse("asks for training samples of classes that this round did not bring.")
        dataset = self.theirs.DataManager.get_dataset(self, indices, "train", mode, *arguments, **named)
        if mode == "train":
            (dataset[-1] if isinstance(dataset, tuple) else dataset).exam = self
        return dataset

    def get_task_size(self, task):
        return self.sizes[task] if task < len(self.sizes) else self.args["increment"].refuse_use()

    def __getattr__(self, name):
        function = getattr(self.theirs.DataManager, name, None)
        if name.startswith("__") or not inspect.isfunction(function):
            raise AttributeError(name)
        return MethodType(function, self)


class Method:
    """A learner of PILOT, with the methods that an exam calls."""

    kind, files = None, {}

    def __init__(self, **hyperparameters):
        first = next(iter(self.files))
        config = hyperparameters.get("config") or first
        if config not in self.files:
            raise PluginError(f"config '{config}' is none of {', '.join(self.files)}.")
        self._args = {**self.files[first], **self.files[config], **OURS, **hyperparameters}
        self._seed = random.getrandbits(63)  # its initial weights do not depend on when it is created
        self._learner = self._exam = None

    @property
    def memory(self):
        return range(0 if self._learner is None else len(self._learner._targets_memory))

    @property
    def remark(self):
        args, hints = self._args, {"n_tasks": "there are {} tasks", "increment": "later rounds bring {} classes"}
        notes = [f"is told that {text.format(args[key])}" for key, text in hints.items() if isinstance(args[key], int)]
        if args["dataset"] != "plain":
            notes.append(f"sees images through LAMDA-PILOT's transforms of {args['dataset']}")
        return "; ".join(notes + ["is shown blank test data"] * args["blank_tests"])

    def train(self, train_data, num_classes, device, passes=None, **context):
        x, labels, args = stored(train_data.x), np.array(train_data.y), self._args
        timm.create_model = lambda name, *given, **options: made(args, name, *given, **options)
        if self._learner is None:
            args["init_cls"], args["nb_classes"] = len(set(labels.tolist())), num_classes
            args.update(device=[torch.device(device)], seed=self._seed % 2**31, prefix="exam")
            for option, key, label in (("n_tasks", "nb_tasks", "tasks"), ("increment", "increment", "later classes")):
                remedy = f"If the model may know it, say so by the hyperparameter {option}; its row will tell."
                args[key] = Hidden(f"the number of {label}", remedy) if args[option] is None else args[option]
            self._exam, self._learner = Exam(num_classes, args), self._built()
        else:
            for value in vars(self._learner).values():
                for parameter in value.parameters() if isinstance(value, torch.nn.Module) else ():
                    # Gradients are not saved, and DualPrompt relies on them.
                    parameter.grad = torch.zeros_like(parameter)
            self._learner.after_task()
        self._exam.begin(x, labels, passes)
        self._learner.incremental_train(self._exam)
        self._exam._train_data = self._exam._train_targets = np.zeros(0, np.uint8)  # they end with their round
        for name, value in vars(self._learner).items():
            if isinstance(value, (DataLoader, Dataset)):
                setattr(self._learner, name, None)

    def _built(self):
        """Return a new learner; the global generators are left unchanged."""
        before = random.getstate(), np.random.get_state()
        with torch.random.fork_rng():
            random.seed(self._seed)
            np.random.seed(self._seed % 2**32)
            torch.manual_seed(self._seed)
            learner = self.kind(self._args)
        random.setstate(before[0])
        np.random.set_state(before[1])
        return learner

    def predict(self, data, num_classes, task_classes=None, **context):
        classes = np.arange(num_classes) if task_classes is None else np.array(task_classes)
        return classes[self.scores(data, num_classes)[:, classes].argmax(1)]

    def scores(self, data, num_classes, **context):
        """Return ranks in the learner's order of classes, from 0 downwards, as it returns no numbers."""
        x, learner = stored(data.x), self._learner
        if learner is None:
            return np.zeros((len(x), num_classes), np.float32)
        learner.topk = learner._total_classes
        shown = self._exam.get_dataset([], "train", "test", appendent=(x, np.full(len(x), -1)))
        loader = Loader(shown, batch_size=self._args["batch_size"])
        if not self._args["blank_tests"]:
            loader = ((index, part, Labels(len(part))) for index, part, _ in loader)
        by_means = self._args["answers"] == "nme"
        ranked, _ = learner._eval_nme(loader, learner._class_means) if by_means else learner._eval_cnn(loader)
        whole = np.full((len(x), num_classes), -np.inf, np.float32)
        whole[np.arange(len(x))[:, None], np.array(self._exam.order)[ranked]] = -np.arange(ranked.shape[1])
        return whole

    def save(self, path):
        torch.save((self._args, self._exam, self._learner), path)

    def load(self, path):
        self._args, self._exam, self._learner = torch.load(path, weights_only=False)


def plugin_class(url, name):
    """Return the plugin class for the learner in the file at `url`, a checkout's models/FILE.py."""
    root, model = Path(url).resolve().parents[1], Path(url).stem
    sys.path.insert(0, str(root))
    module = importlib.import_module("models." + model)
    Exam.theirs = importlib.import_module("utils.data_manager")
    networks, kind = importlib.import_module("utils.inc_net"), getattr(module, name, None)
    if not hasattr(kind, "incremental_train"):
        raise PluginError(f"{Path(url).name} has no learner '{name}'. In LAMDA-PILOT it is called Learner.")
    texts = {
        path.stem: json.loads(path.read_text()) for path in sorted((root / "exps").glob("*.json")) if path.is_file()
    }
    files = {stem: text for stem, text in texts.items() if text.get("model_name") == model}
    if not files:
        raise PluginError(f'no json file in {root / "exps"} has `"model_name": "{model}"`, with its settings.')
    for imported in list(sys.modules.values()):
        if getattr(imported, "DataLoader", None) is DataLoader and imported.__name__.startswith(("models.", "utils.")):
            imported.DataLoader = Loader
    measured, backbone = kind._compute_accuracy, networks.get_backbone

    def compute_accuracy(self, model, loader):
        return np.nan if isinstance(loader.dataset, Unseen) else measured(self, model, loader)

    def get_backbone(args, pretrained=False):
        network = backbone(args, pretrained)
        if hasattr(network, "num_features"):
            network.out_dim = getattr(network, "head_hidden_size", network.num_features)  # for PILOT it is 768
        return network

    kind._compute_accuracy, networks.get_backbone = compute_accuracy, get_backbone
    taken = {key: value for text in reversed(list(files.values())) for key, value in text.items() if key not in ASIDE}
    named = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value)
        for key, value in {**taken, **OURS}.items()
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def __init__(self, **hyperparameters):
        Method.__init__(self, **hyperparameters)

    __init__.__signature__ = inspect.Signature([itself, *named])
    return type(name, (Method,), {"__init__": __init__, "kind": kind, "files": files})


def refuse(message):
    """Return an ExamRuleError that names the line of the checkout that caused it."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in PACKAGES:
        frame = frame.f_back
    where = "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} "
    raise ExamRuleError(where + message)


def made(args, name, pretrained=False, **options):
    """Return a network of timm. Its weights come from a file on this machine, since nothing is downloaded."""
    words = args["backbone"].split()
    first = words.pop(0) if words and "=" not in words[0] else name
    options.update((word.partition("=")[0], json.loads(word.partition("=")[2])) for word in words)
    network = of_timm(first, pretrained=False, **options)
    if not pretrained or args["weights"] == "none":
        return network
    if args["weights"] is None:
        message = (
            f"{first} asks for pre-trained weights, and nothing is downloaded: say `weights: FILE` or `weights: none`."
        )
        raise PluginError(message)
    state, wanted = torch.load(args["weights"], map_location="cpu", weights_only=True), network.state_dict()
    fits = {key: value for key, value in state.items() if key in wanted and wanted[key].shape == value.shape}
    odd = [key for key in state if key not in fits and not key.startswith(("head", "fc.", "classifier"))]
    if odd or not fits:
        raise PluginError(f"{args['weights']} has {', '.join(odd[:3]) or 'nothing'}, which does not fit {first}.")
    network.load_state_dict(fits, strict=False)
    return network


def stored(x):
    """Return images as stored by PILOT's datasets, (N, H, W, 3) uint8; grey ones are repeated."""
    if x.ndim != 4 or x.shape[3] not in (1, 3):
        raise PluginError(f"LAMDA-PILOT's methods are for images, not for samples of shape {x.shape[1:]}.")
    values = np.asarray(x) if x.dtype == np.uint8 else np.round(np.asarray(x) * 255).astype(np.uint8)
    return np.repeat(values, 3 // values.shape[3], 3)
