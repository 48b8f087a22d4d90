"""PackNet."""

import copy

import torch

from ianvs.authoring import TorchLearner
from ianvs.errors import PluginError

REFUSAL = "PackNet has to be told which classes answers are chosen among: give it a task-incremental exam."


class PackNet(TorchLearner):
    """PackNet (Mallya & Lazebnik 2018, arXiv 1711.05769, section 3): a part of the weights for each task.

    A task trains all weights that no task before it owns. Then, in each layer, it gives up the share `prune` of them
    that is smallest in size, which become 0, trains the others for the last share `retrain` of its steps, and owns them:
    they never change again. An answer is given by the weights of its task and of earlier ones; those of later tasks are 0.
    Biases and normalisation belong to the first task. The head's rows belong to the task that taught their class last.
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, prune: float = 0.75, retrain: float = 0.3, **training):
        super().__init__(**training)
        self.prune, self.retrain = prune, retrain
        self.owners = {}  # name of a parameter of the body -> which task owns each of its weights, 0: none
        self.tasks = []  # classes of each, in the order of learning

    def check_exam(self, *, kind, shape, num_classes):
        super().check_exam(kind=kind, shape=shape, num_classes=num_classes)
        for name, share in (("prune", self.prune), ("retrain", self.retrain)):
            if not 0 <= share < 1:
                raise PluginError(f"{name} is a share, from 0 to below 1; it can't be {share:g}.")

    def body(self):
        """(name, parameter) of all but the head."""
        return [*self.network[:-1].named_parameters()]

    def before_round(self, data):
        if data.task_masks is None:
            raise PluginError(REFUSAL)
        own = data.task_masks[-1] == 0  # its classes
        self.tasks.append(own.nonzero()[:, 0].tolist())
        for name, p in self.body():
            self.owners.setdefault(name, torch.full(p.shape, 0 if p.dim() > 1 else 1))
        task = len(self.tasks)
        self.free = {p: self.owners[name].to(p.device) == (0 if p.dim() > 1 else task) for name, p in self.body()}
        self.free |= {p: own.view(-1, *[1] * (p.dim() - 1)).expand_as(p) for p in self.network[-1].parameters()}
        self.fixed = {p: p.detach().clone() for p in self.free}
        if task > 1:
            for module in self.network.modules():
                if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                    module.eval()
        steps = self.schedule.steps(len(data), data.passes)
        self.left, self.left_after_pruning = steps, int(self.retrain * steps)

    @torch.no_grad()
    def after_step(self, x, y, epoch, step):
        for p, free in self.free.items():
            p.copy_(torch.where(free, p, self.fixed[p]))
        self.left -= 1
        if self.left == self.left_after_pruning:
            self.pack()

    @torch.no_grad()
    def pack(self):
        """Give up the smallest weights of the task; own the others."""
        for name, p in self.body():
            if p.dim() > 1:
                free = self.free[p]
                sizes = p.abs().masked_fill(~free, torch.inf).flatten()
                given_up = sizes.topk(int(self.prune * int(free.sum())), largest=False).indices
                self.free[p] = free.flatten().index_fill(0, given_up, False).view_as(free)
                self.fixed[p] = p.flatten().index_fill(0, given_up, 0.0).view_as(p)
                p.copy_(self.fixed[p])
                self.owners[name] = self.owners[name].masked_fill(self.free[p].cpu(), len(self.tasks))

    def after_round(self, data):
        if self.left > self.left_after_pruning:  # a round without a step
            self.pack()

    def answer_logits(self, data, *, task_classes=None, **context):
        if not self.tasks:
            return super().answer_logits(data, task_classes=task_classes, **context)
        if task_classes is None:
            raise PluginError(REFUSAL)
        told = [k for k, classes in enumerate(self.tasks, start=1) if classes == sorted(task_classes)]
        packed, self.network = self.network, copy.deepcopy(self.network)
        with torch.no_grad():
            for name, p in self.body():  # a task that is still to come gets all that was learned
                p.masked_fill_((self.owners[name] > (told or [len(self.tasks)])[-1]).to(p.device), 0.0)
        try:
            return super().answer_logits(data, task_classes=task_classes, **context)
        finally:
            self.network = packed

    def state(self):
        return {"owners": self.owners, "tasks": self.tasks}

    def restore(self, state):
        self.owners, self.tasks = dict(state["owners"]), [*state["tasks"]]
