"""Base class that tunes a language model on conversations, so a method only defines its differences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from ianvs.authoring.randomness import seeded
from ianvs.base.errors import PluginError
from ianvs.base.seeding import stream_seed
from ianvs.base.types import Measure
from ianvs.plugins.contract import Generation
from ianvs.testalgorithms.language.batches import Batch, RoundOfTalk, collate, split_by_tokens
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Conversation, Encoded, conversations_of, texts_of
from ianvs.testalgorithms.language.general_ability import GeneralAbility
from ianvs.testalgorithms.language.generation import Replying, reply
from ianvs.testalgorithms.language.lengths import Lengths, remark_of_rounds
from ianvs.testalgorithms.language.model_check import check_model
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.models import (
    build_model,
    load_model,
    recompute_activations,
    remark_of_adapter,
    save_model,
    sight_of,
)
from ianvs.testalgorithms.language.numbers import above, at_least
from ianvs.testalgorithms.language.probes import require_apart
from ianvs.testalgorithms.language.served import require_servable, sees_pictures, written_by
from ianvs.testalgorithms.language.sight import is_projector, require_sight, shelved, unshelved
from ianvs.testalgorithms.language.source_target import pairs
from ianvs.testalgorithms.language.steps import Steps
from ianvs.testalgorithms.language.teacher_forced import mean_surprise, of_whole
from ianvs.testalgorithms.language.tuning_loop import Descent

PICTURES = "pictures"  # of those that a method keeps, in the folder of a model


class LanguageLearner(Steps):
    """Tunes a causal language model on what each round brings; by default, one round after the other.

    The loss is the mean of -log p(token | tokens before) over what the assistant says, its end mark included. Each
    round has a new AdamW with a linear warm-up and a cosine decay, as instruction tuning usually has.

    A method overrides some of: `loss`, `extend`, `before_round`, `before_step`, `after_step`, `after_round`; `state`
    and `restore` if it keeps something between rounds.

    base_model: "tiny", or "tiny-stand-in" to have it said in reports (a stand-in of `layers` blocks of `width` with
    `heads`, and a tokenizer of `vocabulary` tokens merged from the text of the first round); a folder, a GGUF file, or
    an installed package that carries one; else a name on Hugging Face, with `revision`, `download` (else only what is
    on this machine), and `trust_remote_code` (runs the model author's code).
    tuning: "full", "lora" or "moelora" (with `experts`); `lora_r`, `lora_alpha`, `lora_dropout`, `target_modules`,
    `target_parameters` (weights that are no modules, such as experts.gate_up_proj; with all-linear, those of experts by
    themselves), `use_dora`, `use_rslora`. chat_template: a file in the place of the model's own template.
    batch_size: conversations; `accumulation` of such batches make a step. max_length: tokens of a conversation, the
    rest is cut off, and one is skipped whose prompt alone is as long. bf16: bfloat16 autocast, and a frozen base in
    bfloat16. checkpointing: recompute activations. quantize: "none", or "4bit" for the frozen base under an adapter
    (QLoRA). device_map: "auto" shares a model out to all GPUs, with accelerate. attention: "eager", "sdpa" or
    "flash_attention_2" (a GPU, and the package flash-attn); else what transformers takes. packing: lay a batch's
    conversations in one row, without padding, kept apart by their positions; the same steps.
    max_new_tokens: longest reply. generation_batch: conversations that are replied to at once. Replies are greedy, or
    drawn at a `temperature` above 0, from the `top_p` likeliest; they end before any of `stop_strings`, too.
    Of a base model that sees, "tiny-vision" (or "tiny-vision-stand-in"), a LLaVA, Qwen2-VL or SmolVLM: projector is
    "tuned", with `projector_learning_rate`, or "frozen"; vision, its tower, likewise; tuning is of its language part.
    general_tasks: tasks of lm-eval that show what else the model can do, measured before training and after each round,
    a column each; `general_limit` of their questions.
    """

    reference = "ianvs.testalgorithms.language.sequential.basemodel:Sequential"  # plain tuning for all
    unservable = ""  # what a method does that no server with the base model and one adapter can do
    network: Any  # exists from the first train() or load() on, of a model with a name from the first predict() on
    template: ChatTemplate

    def __init__(
        self,
        *,
        base_model: str = "tiny",
        tuning: str = "full",
        revision: str | None = None,
        download: bool = False,
        trust_remote_code: bool = False,
        lora_r: int = 16,
        lora_alpha: float = 32,
        lora_dropout: float = 0.0,
        target_modules: str | Sequence[str] = "all-linear",
        target_parameters: Sequence[str] | None = None,
        use_dora: bool = False,
        use_rslora: bool = False,
        chat_template: str | None = None,
        experts: int = 4,
        vocabulary: int = 512,
        width: int = 128,
        layers: int = 2,
        heads: int = 4,
        quantize: str = "none",
        device_map: str | None = None,
        attention: str | None = None,
        learning_rate: float = 1e-3,
        epochs: int = 20,
        batch_size: int = 16,
        accumulation: int = 1,
        warmup: float = 0.05,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        max_length: int = 1024,
        bf16: bool = False,
        checkpointing: bool = False,
        packing: bool = False,
        max_new_tokens: int = 64,
        generation_batch: int = 32,
        temperature: float = 0.0,
        top_p: float = 1.0,
        stop_strings: str | Sequence[str] = (),
        projector: str = "tuned",
        projector_learning_rate: float = 2e-5,
        vision: str = "frozen",
        general_tasks: str = "",
        general_limit: int | None = None,
    ) -> None:
        given = locals()
        self.options = ModelOptions(**{field.name: given[field.name] for field in fields(ModelOptions)})
        self.descent = Descent(**{field.name: given[field.name] for field in fields(Descent)})
        self.replying = Replying(max_new_tokens, generation_batch, temperature, top_p, stop_strings)
        above(0, projector_learning_rate=projector_learning_rate)
        self.projector_learning_rate = projector_learning_rate
        at_least(2, max_length=max_length)  # one token to learn and one before it
        self.max_length, self.lengths = max_length, Lengths(max_length)
        self.checkpointing, self.packing, self._built = checkpointing, packing, False
        self.general, self._tokenizer = GeneralAbility(general_tasks, general_limit), None
        self._held_out: Sequence[Encoded] = ()
        self._generation: Generation | None = None

    # What a method may override, beside the steps of `Steps`.

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss that a step minimises; by default, the mean over learnt tokens of -log p."""
        return cross_entropy(self.logits(batch), batch.targets)

    # What the benchmark calls.

    def check_exam(
        self,
        *,
        kind: str = "conversation",
        conversations: Sequence[tuple[Sequence[Any], Sequence[Any]]] | None = None,
        server: Mapping[str, str] | None = None,
    ) -> str:
        """Refuse data that are not conversations, and a base model that is missing, or lacks the parts to be tuned.

        Also refuses a round of which nothing fits into max_length, and a server that can't write its replies. Returns
        what is skipped and cut of any round. All this happens before training.
        """
        if kind != "conversation":
            raise PluginError(
                f"it learns conversations, and the data are {kind}. docs/language.md lists their forms. Where a "
                "question and its answer are two fields, name them in the dataset: columns: {prompt: question, reply: "
                "answer}.",
                code="refused-arguments",
            )
        check_model(self.options, self.replying.batch_size)
        self.general.check()
        if server is not None:
            sees = sees_pictures(self.options)
            require_servable(self.options, server, self.replying, sees=sees, why_not=self.unservable)
        rounds = [conversations_of(*pair) for pair in conversations or ()]
        return remark_of_rounds(rounds, self.options, self.max_length, self.packing) if rounds else ""

    def train(
        self,
        train_data: Any,
        valid_data: Any = None,
        *,
        round: int = 1,
        device: str = "cpu",
        seed: int = 0,
        folder: Path | None = None,
        passes: int | None = None,
        progress: Callable[[float], Any] | None = None,
        **context: Any,
    ) -> None:
        """Learn from one round.

        progress is told the share of steps done, and loss (what a step goes down, a mean since it was told last),
        learning_rate and tokens_per_second; after an epoch held_out_loss, the mean of -log p on `valid_data`.
        """
        conversations = conversations_of(train_data.x, train_data.y)
        self._ready(conversations, device, seed)
        require_sight(conversations, self.template.sight, self.options.base_model, self.packing)
        fitting, encoded = self.lengths.fitting(conversations, self.template, round)
        data = RoundOfTalk(fitting, encoded, round, seed, folder)
        self._held_out = []
        if valid_data is not None:
            held_out = self.encode(conversations_of(valid_data.x, valid_data.y))
            self._held_out = [row for row in held_out if any(row.learnt[1:])]
        if self.packing:
            with self._precision():
                require_apart(self.network.eval(), self.batch, encoded, self.options.base_model)
        with seeded(stream_seed(seed, round, "noise"), device):  # dropout, and whatever else a network draws
            self.before_round(data)
            self.network.train()
            self.descent.run(self, data, passes, progress)
            self.after_round(data)

    def predict(
        self,
        data: Any,
        *,
        device: str = "cpu",
        seed: int = 0,
        round: int = 0,
        generation: Generation | None = None,
        **context: Any,
    ) -> list[list[str | None]]:
        """Return replies to every user turn, each given the model's own earlier ones.

        generation: who writes them, or has them already; without it, the network does.

        A tiny model can't reply before it was trained, because its tokenizer is made from the first round. Those
        replies are None.
        """
        conversations = conversations_of(data.x)
        if not self._built and self.options.tiny:
            return [[None] * len(conversation.user) for conversation in conversations]
        self._ready(conversations, device, seed)
        self._generation = generation
        try:
            with seeded(stream_seed(seed, round, "replies"), device):
                return self.answer(conversations)
        finally:
            self._generation = None

    def answer(self, conversations: Sequence[Conversation]) -> list[list[str | None]]:
        """Return replies with the current weights."""
        self.network.eval()
        with torch.inference_mode(), self._precision():
            return reply(
                self.network,
                self.template,
                conversations,
                self.replying,
                window=self.window,
                written=written_by(self._generation, self.network, self.template, self.options, self.replying),
            )

    def teacher_forced(self, data: Any, *, device: str = "cpu", seed: int = 0, **context: Any) -> list[list[float]]:
        """[right tokens, learnt tokens, sum of their log-likelihoods] of the true replies of each conversation.

        A tiny model that was not trained yet has no tokens: those are zeros.
        """
        conversations = conversations_of(data.x, data.y)
        if not self._built and self.options.tiny:
            return [[0.0, 0.0, 0.0] for _ in conversations]
        self._ready(conversations, device, seed)
        return self.judge(conversations)

    def judge(self, conversations: Sequence[Conversation]) -> list[list[float]]:
        """Return teacher-forced results of these conversations with the current weights."""
        self.network.eval()
        with torch.inference_mode(), self._precision():
            return of_whole(self.network, self.template, conversations, self.window)

    @property
    def measures(self) -> dict[str, Measure]:
        """Return descriptions of the measures besides scores, by column."""
        return self.general.measures

    def measured(self, *, device: str = "cpu", seed: int = 0) -> dict[str, float]:
        """Return scores of `general_tasks` with the present weights; a tiny model that was not trained yet has none."""
        if not self.measures or (not self._built and self.options.tiny):
            return {}
        self._ready([], device, seed)
        self.network.eval()
        with self._precision():
            most = {"batch": self.replying.batch_size, "longest": self.window}
            return self.general.scores(self.network, self._tokenizer, **most)

    def save(self, path: Path) -> Path:
        """Write everything that a continuation needs to the folder `path`."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        if self._built:
            save_model(self.network, self._tokenizer, self.options, path)
        method = shelved(self.state(), path / PICTURES)
        state = {"built": self._built, "method": method, "lengths": self.lengths.state()}
        torch.save(state, path / "method.pt")
        return path

    def load(self, path: Path) -> None:
        """Bring back what `save` wrote, bit for bit, on the CPU: the next train() or predict() moves it."""
        saved = torch.load(Path(path) / "method.pt", map_location="cpu", weights_only=True)
        self.reset()
        if saved["built"]:
            with seeded(0):  # weights that are drawn are overwritten; the draws shall not show
                self._adopt(*load_model(self.options, Path(path)))
        self.lengths = Lengths(self.max_length, saved["lengths"])
        self.restore(unshelved(saved["method"], Path(path) / PICTURES))

    @property
    def remark(self) -> str:
        """Return the learner's note for the report; a method adds its own."""
        under = remark_of_adapter(self.network) if self._built and self.options.tuning != "full" else ""
        return "; ".join(filter(None, (under, self.lengths.remark)))

    def held_out_loss(self) -> float | None:
        """Return the mean of -log p over what the assistant says in the round's held-out conversations; None without
        any.
        """
        if not self._held_out:
            return None
        most = self.descent.batch_size * self.max_length
        return mean_surprise(self.network, self.logits, map(self.batch, split_by_tokens(self._held_out, most)))

    # For methods to use.

    def reset(self) -> None:
        """Forget the weights: the next call that needs them starts from the first ones. Tokens stay the same."""
        self._built = False

    def encode(self, conversations: Sequence[Conversation]) -> list[Encoded]:
        """Tokens of conversations that a round brought, cut to `max_length`."""
        return [
            encoded.cut(self.max_length)
            for conversation in conversations
            for _, encoded in self.template.learnable(conversation)
        ]

    def batch(self, conversations: Sequence[Encoded]) -> Batch:
        """These conversations as one batch on the device of the model."""
        if self.network.config.is_encoder_decoder:
            return pairs(conversations, self.template.pad, self._tokenizer.eos_token_id, self.device)
        return collate(conversations, self.template.pad, self.device, self.packing, self.template.sight)

    @property
    def window(self) -> int | None:
        """Return the number of tokens that the model can read at once; None if it does not say."""
        config = self.network.config
        return getattr(getattr(config, "text_config", config), "max_position_embeddings", None)

    @property
    def device(self) -> torch.device:
        return next(iter(self.network.parameters())).device  # type: ignore[no-any-return]

    @property
    def weights(self) -> dict[str, torch.nn.Parameter]:
        """Return the tuned weights by name: all of a model, or its adapter."""
        return {name: p for name, p in self.network.named_parameters() if p.requires_grad}

    @property
    def rates(self) -> dict[str, float]:
        """Return the learning rates of weights with their own rate."""
        return {name: self.projector_learning_rate for name in self.weights if is_projector(name)}

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        """Replace the weights by `values`."""
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(values[name])

    def logits(self, batch: Batch, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return (N, V) float32 scores of the next token where it is learnt, aligned with `batch.targets`.

        weights: those of another model of the same kind, in evaluation mode and without a gradient.
        """
        inputs = batch.inputs(self.network)
        if weights is None:
            with self._precision():
                return batch.of_learnt(self.network(**inputs).logits)
        training = self.network.training
        self.network.eval()
        try:
            with torch.no_grad(), self._precision():
                return batch.of_learnt(functional_call(self.network, dict(weights), (), inputs).logits)
        finally:
            self.network.train(training)

    # How it is built.

    def _precision(self) -> Any:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.bf16)

    def _ready(self, conversations: Sequence[Conversation], device: str, seed: int) -> None:
        if not self._built:
            with seeded(stream_seed(seed, 0, "init")):
                self._adopt(*build_model(self.options, texts_of(conversations), self._tokenizer))
        if not self.options.placed:
            self.network.to(device)

    def _adopt(self, network: Any, tokenizer: Any) -> None:
        from transformers import GenerationConfig

        ends = network.generation_config.eos_token_id
        stops = ends if isinstance(ends, list) else [] if ends is None else [ends]
        self.template = ChatTemplate(tokenizer, stops, sight_of(self.options, tokenizer))
        # No penalties and no sampling, whatever its author suggests: replies are greedy. The ends stay, and are saved.
        network.generation_config = GenerationConfig(eos_token_id=ends)  # type: ignore[no-untyped-call]
        if self.checkpointing:
            recompute_activations(network)
        self.network, self._tokenizer, self._built = network, tokenizer, True
