"""PackNet."""

from functools import partial

import torch
from torch.func import functional_call

from ianvs.authoring import TorchLearner
from ianvs.base.errors import PluginError

REFUSAL = "PackNet needs the classes of each task in testing: use a task-incremental exam."


class PackNet(TorchLearner):
    """PackNet (Mallya & Lazebnik 2018, arXiv 1711.05769, section 3): each task owns a part of the weights.

    A task trains all weights of the body that no task owns. Then, in each layer, it gives up the share `prune` of them
    that is smallest in size, which become 0, trains the others for the last share `retrain` of its steps, and owns
    them: they never change again. An answer is made of the weights of its task and of earlier ones; others are 0 in it.
    Biases and normalisation belong to the first task, the head's row of a class to the task that taught it last.
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, prune: float = 0.75, retrain: float = 0.3, **training):
        super().__init__(**training)
        if not (0 <= prune < 1 and 0 <= retrain < 1):
            raise PluginError(
                f"prune and retrain are shares, 0 to below 1; they can't be {prune:g} and {retrain:g}.",
                code="out-of-range",
            )
        self.prune, self.retrain = prune, retrain
        self.owners = {}  # name of a parameter of the body -> the task that owns each of its numbers; 0: none
        self.tasks = []  # classes of each, in the order of learning

    def before_round(self, data):
        if data.task_masks is None:
            raise PluginError(REFUSAL, code="refused-arguments")
        in_task, body = data.task_masks[-1] == 0, [*self.network[:-1].named_parameters()]
        self.tasks.append(in_task.nonzero()[:, 0].tolist())
        self.owners = self.owners or {name: torch.zeros(p.shape, dtype=torch.int16) for name, p in body}
        self.free = {p: self.owners[name].to(p.device) == 0 for name, p in body}
        self.free |= {p: in_task.view(-1, *[1] * (p.dim() - 1)) for p in self.network[-1].parameters()}
        self.fixed = {p: p.detach().clone() for p in self.free}
        for module in [m for m in self.network.modules() if len(self.tasks) > 1 and hasattr(m, "running_mean")]:
            module.eval()
        self.left = self.schedule.steps(len(data), data.passes) * self.schedule.updates_per_batch
        self.last = int(self.retrain * self.left)

    def after_step(self, x, y, epoch, step):
        self.left -= 1
        if self.left == self.last:
            for name, p in self.network[:-1].named_parameters():
                self.pack(p, self.owners[name])
        for p, free in self.free.items():
            p.data.copy_(torch.where(free, p, self.fixed[p]))

    def pack(self, p, owner):  # one layer
        sizes = p.detach().abs().masked_fill(~self.free[p], torch.inf).flatten()
        n = round(self.prune * int(self.free[p].sum())) if p.dim() > 1 else 0
        small = torch.zeros_like(sizes, dtype=torch.bool).index_fill(0, sizes.topk(n, largest=False).indices, True)
        self.free[p] &= ~small.view(p.shape)
        self.fixed[p].masked_fill_(small.view(p.shape), 0.0)
        owner[self.free[p].cpu()] = len(self.tasks)

    def answer_logits(self, data, *, task_classes=None, **context):
        if self.tasks and task_classes is None:
            raise PluginError(REFUSAL, code="refused-arguments")
        matching = [k for k, classes in enumerate(self.tasks, 1) if classes == sorted(task_classes)]
        self.task = matching[-1] if matching else len(self.tasks)  # one that is still to come: all that was learned
        return super().answer_logits(data, task_classes=task_classes, **context)

    def answers(self, x, mask):
        parameters = {name: self.network.get_parameter(name) for name in self.owners}
        shown = {
            name: p.masked_fill((self.owners[name] > self.task).to(p.device), 0.0) for name, p in parameters.items()
        }
        return self.logits(x, mask, partial(functional_call, self.network, shown))

    def state(self):
        return {"owners": self.owners, "tasks": self.tasks}

    def restore(self, state):
        self.owners, self.tasks = dict(state["owners"]), [*state["tasks"]]
