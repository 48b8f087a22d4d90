"""O-LoRA: each round has an adapter of its own, in a subspace that is orthogonal to those of the rounds before."""

from dataclasses import replace
from math import inf, sqrt

import torch
from peft.tuners.lora import LoraLayer

from ianvs.base.errors import PluginError, require_known
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.adapter_config import adapter_config
from ianvs.testalgorithms.language.numbers import within

NEW, OLD = "default", "old"  # the adapter that learns, and those of all rounds before as one


class OLoRA(LanguageLearner):
    """Orthogonal low-rank adaptation (Wang et al. 2023, arXiv 2310.14152, section 3.2).

    y = W x + s sum_i B_i A_i x, i over rounds, of which only the newest learns:
    L = L_new + lambda_1 sum_{i < t} L_orth(A_i, A_t) + lambda_2 (|A_t| + |B_t|), summed over the adapted layers.

    orthogonality: "absolute" takes L_orth = sum_jk |(A_i A_t^T)_jk|, as the authors' code does (cmnfriend/O-LoRA
    07117e1, src/uie_trainer_lora.py:91-109), "squared" its squares, as the paper writes it.
    lambda_1, lambda_2: 0.5 and 0 in most of their scripts; |.| is the Euclidean norm.

    The old adapters are kept as one of rank t r, whose rows of A are those of A_1 to A_t: the same sum. It is saved
    beside the new one, in adapter/old.
    """

    unservable = "O-LoRA answers with two adapters at once, that of the round and those of all before"

    def __init__(self, *, tuning="lora", lambda_1=0.5, lambda_2=0.0, orthogonality="absolute", **options):
        super().__init__(tuning=tuning, **options)
        if tuning != "lora":
            raise PluginError(f"tuning is '{tuning}'; O-LoRA tunes adapters: lora.", code="conflicting-keys")
        if self.options.use_dora or self.options.target_parameters:
            raise PluginError(
                "O-LoRA adds products of matrices: take use_dora and target_parameters out.", code="conflicting-keys"
            )
        self.options = replace(self.options, target_parameters=())  # nor those of experts, which are no layers
        require_known("orthogonality", orthogonality, ("absolute", "squared"))
        within(0, inf, lambda_1=lambda_1, lambda_2=lambda_2)
        self.lambda_1, self.lambda_2, self.orthogonality, self.rounds = lambda_1, lambda_2, orthogonality, 0

    def layers(self):
        return [module for module in self.network.modules() if isinstance(module, LoraLayer)]

    def loss(self, batch):
        loss = super().loss(batch)
        if self.rounds and self.lambda_1:
            loss = loss + self.lambda_1 * self.overlap()
        if self.lambda_2:
            loss = loss + self.lambda_2 * sum(weight.norm() for weight in self.weights.values())
        return loss

    def overlap(self):
        """How far the new subspaces are from being orthogonal to the old ones."""
        products = [layer.lora_A[OLD].weight @ layer.lora_A[NEW].weight.T for layer in self.layers()]
        return sum((p.abs() if self.orthogonality == "absolute" else p.square()).sum() for p in products)

    def after_round(self, data):
        """What was learnt joins the old ones, and the next adapter begins as LoRA does: A drawn, B 0."""
        rank, draw = self.options.lora_r, data.generator("adapter")
        joined = []
        for layer in self.layers():
            names = [OLD, NEW] if self.rounds else [NEW]
            A = torch.cat([layer.lora_A[name].weight.detach() for name in names])
            B = torch.cat([layer.lora_B[name].weight.detach() for name in names], dim=1)
            joined.append((A, B))
        if self.rounds:
            self.network.delete_adapter(OLD)
        self.rounds += 1
        more = sqrt(self.rounds) if self.options.use_rslora else self.rounds  # the scale s of each of them stays
        alpha = more * self.options.lora_alpha
        options = replace(self.options, lora_r=self.rounds * rank, lora_alpha=alpha, lora_dropout=0.0)
        self.network.add_adapter(OLD, adapter_config(self.network, options))
        self.use_both()
        with torch.no_grad():
            for layer, (A, B) in zip(self.layers(), joined, strict=True):
                layer.lora_A[OLD].weight.copy_(A)
                layer.lora_B[OLD].weight.copy_(B)
                new = layer.lora_A[NEW].weight
                bound = 1 / sqrt(new.shape[1])  # Kaiming's uniform with a = sqrt(5)
                new.copy_(torch.rand(new.shape, generator=draw).mul_(2 * bound).sub_(bound))
                layer.lora_B[NEW].weight.zero_()

    def use_both(self):
        self.network.base_model.set_adapter([NEW, OLD])
        for name, weight in self.network.named_parameters():
            weight.requires_grad_("lora_" in name and f".{NEW}." in name)

    def load(self, path):
        super().load(path)
        if self.rounds:
            self.network.load_adapter(path / "adapter" / OLD, OLD)
            self.use_both()

    def state(self):
        return {"rounds": self.rounds}

    def restore(self, state):
        self.rounds = state["rounds"]
