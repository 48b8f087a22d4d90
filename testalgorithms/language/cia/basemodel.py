"""CIA: a moving average of the weights that finds its own pace."""

import json

import torch

from ianvs.base.errors import PluginError, require_known
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.averaging import DynamicAverage
from ianvs.testalgorithms.language.grouping import INSTRUCTIONS, Codebook, instruction_of
from ianvs.testalgorithms.language.numbers import within

PRESETS = {
    "paper": {"formula_side": "old", "scale": 1.0, "fallback": 0.99, "init": "before_first_step"},
    "coin": {"formula_side": "new", "scale": 2.0, "fallback": 0.01, "init": "after_first_step"},
    "continual_next": {"formula_side": "new", "scale": 0.01, "fallback": 0.001, "init": "after_first_step"},
}
GROUPS = {  # how rounds and test conversations find their group
    "paper": {"new_group": "fresh", "vectors": "round", "routing": "conversation", "below": "nearest"},
    "coin": {"new_group": "continue", "vectors": "pair", "routing": "test_set", "below": "newest"},
}


class CIA(LanguageLearner):
    """Large Continual Instruction Assistant (ICML 2025, arXiv 2410.10868).

    theta*_t = beta_t theta*_{t-1} + (1 - beta_t) theta_t after every step, a beta_t for each tensor (`per: global`, one
    for all): beta_t = (1 + |g_t|) / (|theta_t - theta*_{t-1}| |g_t - g_{t-1}|), L1 norms; 0.99 if not in (0, 1).
    Within a round theta trains on; at its end theta <- theta*, which is what is tested, saved, and trained on next.
    The first round of a set of weights is trained without an average, as by the authors.

    preset: "coin", the released code behind the published numbers (CoIN efa9cb4, CoIN/peft/tuners/lora.py:635-660), or
    that of "continual_next" (Continual-NExT 3658f2d, peft/tuners/lora/model.py:954-980): both put the formula on the
    new weights, and theta* begins as the weights after the first step. "paper": the formula as printed, and theta*
    begins as the weights before it. Any of formula_side ("old", "new"), scale, fallback, init ("before_first_step",
    "after_first_step") replaces its part.
    beta: from 0 to 1, the weight of the old in every step, instead of the formula (the ablation of the paper).
    grouping: "tfidf" gives each group of rounds whose instructions are alike (mean cosine >= `threshold`) weights of
    its own, and routes each test conversation to one. "none": one set for all. The preset "coin" does so as its script:
    a new group goes on from the present weights (`new_group: continue`; `fresh` from the first ones), TF-IDF is fitted
    on each pair (`vectors: pair`; on a `round`), a test set is routed as a whole where the exam tells the task
    (`routing: test_set`, else each `conversation`), and what is nearer to no group than the threshold goes to the
    newest (`below: newest`, or `nearest`). Its threshold is .9, and .3 for the authors' other sets of prompts.
    instruction: where it is in a conversation without a system prompt: the "last_line" of what the user says first (the
    paper's questions end with it), its "first_line", or all of it, "first_turn".
    """

    def __init__(
        self,
        *,
        preset="coin",
        formula_side=None,
        scale=None,
        fallback=None,
        init=None,
        beta=None,
        per="tensor",
        grouping="none",
        threshold=0.9,
        new_group=None,
        vectors=None,
        routing=None,
        below=None,
        instruction="last_line",
        **tuning,
    ):
        super().__init__(**tuning)
        given = {"formula_side": formula_side, "scale": scale, "fallback": fallback, "init": init}
        for name, value, choices in (
            ("preset", preset, tuple(PRESETS)),
            ("init", init or "before_first_step", ("before_first_step", "after_first_step")),
            ("per", per, ("tensor", "global")),
            ("grouping", grouping, ("none", "tfidf")),
            ("new_group", new_group or "fresh", ("fresh", "continue")),
            ("vectors", vectors or "round", ("round", "pair")),
            ("routing", routing or "conversation", ("conversation", "test_set")),
            ("below", below or "nearest", ("nearest", "newest")),
            ("instruction", instruction, INSTRUCTIONS),
        ):
            require_known(name, value, choices)
        rule = PRESETS[preset] | {name: value for name, value in given.items() if value is not None}
        self.start = rule.pop("init")
        self.rule = {**rule, "per_tensor": per == "tensor", "constant": beta}
        if beta is not None:
            within(0, 1, beta=beta)
            if parts := [name for name in ("formula_side", "scale", "fallback") if given[name] is not None]:
                raise PluginError(
                    f"beta is {beta}, and {' and '.join(parts)} of the formula it stands for. Drop either.",
                    code="refused-arguments",
                )
        DynamicAverage(**self.rule)  # says now what is wrong with them
        within(0, 1, threshold=threshold)
        chosen = {"new_group": new_group, "vectors": vectors, "routing": routing, "below": below}
        groups = GROUPS.get(preset, GROUPS["paper"]) | {name: value for name, value in chosen.items() if value}
        self.new_group, self.routing, self.instruction = groups["new_group"], groups["routing"], instruction
        rules = {"vectors": groups["vectors"], "below": groups["below"]}
        self.codebook = Codebook(threshold, **rules) if grouping == "tfidf" else None
        self.of_one_task = False  # whether what is asked now is one test set
        self.average, self.learnt, self.group, self.shelf, self.first = None, set(), 0, {}, None
        self.betas = []  # of each round what DynamicAverage.record() says

    def before_round(self, data):
        if self.codebook is not None:
            self.take_group(data)
        again = self.group in self.learnt
        current = {name: weight.detach().clone() for name, weight in self.weights.items()}
        start = current if self.start == "before_first_step" else None
        self.average = DynamicAverage(**self.rule, average=start) if again else None

    def after_step(self):
        if self.average is not None:
            weights = self.weights
            moved_by = {name: torch.zeros_like(w) if w.grad is None else w.grad for name, w in weights.items()}
            self.average.step(weights, moved_by)

    def after_round(self, data):
        record = {"round": data.round, "group": self.group, "mean_beta": None, "fallback_share": None, "left": None}
        if self.average is not None:
            record |= self.average.record()
            self.set_weights(self.average.average)
        self.betas.append(record)
        if data.folder is not None:
            (data.folder / "cia_betas.json").write_text(json.dumps(self.betas, indent=1))
        self.average = None
        self.learnt.add(self.group)
        if self.codebook is not None:
            self.shelf[self.group] = self.copy_of_weights()

    @property
    def remark(self):
        rounds = [record for record in self.betas if record["left"] is not None]
        notes = []
        if rounds:
            left = ", ".join(f"{r['left']:.2g} of round {r['round']}" for r in rounds)
            notes.append(f"share of a round's starting weights that is left at its end (product of the betas): {left}")
            notes.append(f"mean beta {sum(r['mean_beta'] for r in rounds) / len(rounds):.3f}")
        if self.codebook is not None and len(self.betas) > 1 and len(self.codebook.groups) == len(self.betas):
            notes.append(
                "every round founded a group of its own, so nothing was averaged, and the routing gives the task away"
            )
        return "; ".join(filter(None, (*notes, super().remark)))

    # Groups of instructions, each with weights of its own.

    def take_group(self, data):
        if self.first is None:
            self.first = self.copy_of_weights()
        self.group, existing = self.codebook.assign(self.instructions(data.conversations))
        if existing:
            self.set_weights(self.shelf[self.group])
        elif self.new_group == "fresh":
            self.set_weights(self.first)

    def instructions(self, conversations):
        return [instruction_of(conversation, self.instruction) for conversation in conversations]

    def copy_of_weights(self):
        return {name: weight.detach().cpu().clone() for name, weight in self.weights.items()}

    def predict(self, data, *, task=None, **context):
        self.of_one_task = task is not None
        return super().predict(data, **context)

    def teacher_forced(self, data, *, task=None, **context):
        self.of_one_task = task is not None
        return super().teacher_forced(data, **context)

    def answer(self, conversations):
        return self.routed(conversations, super().answer)

    def judge(self, conversations):
        return self.routed(conversations, super().judge)

    def routed(self, conversations, answers):
        """What `answers` gives of each conversation, with the weights of its group."""
        if not self.shelf:
            return answers(conversations)
        together = self.routing == "test_set" and self.of_one_task
        groups = self.codebook.route(self.instructions(conversations), together=together)
        current, results = self.copy_of_weights(), [None] * len(conversations)
        for group in sorted(set(groups)):
            self.set_weights(self.shelf[group])
            chosen = [i for i, number in enumerate(groups) if number == group]
            for i, result in zip(chosen, answers([conversations[i] for i in chosen]), strict=True):
                results[i] = result
        self.set_weights(current)
        return results

    def state(self):
        groups = self.codebook.groups if self.codebook is not None else []
        state = {"betas": self.betas, "learnt": sorted(self.learnt), "group": self.group}
        return {**state, "groups": groups, "shelf": self.shelf, "first": self.first}

    def restore(self, state):
        self.betas, self.learnt, self.group = list(state["betas"]), set(state["learnt"]), state["group"]
        self.shelf, self.first = dict(state["shelf"]), state["first"]
        if self.codebook is not None:
            rules = {"vectors": self.codebook.vectors, "below": self.codebook.below}
            self.codebook = Codebook(self.codebook.threshold, state["groups"], **rules)
