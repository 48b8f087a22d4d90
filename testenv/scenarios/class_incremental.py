"""Class-incremental learning: every round brings new classes, and the model must distinguish all classes seen so far.

METHODS: survey arXiv 2302.00487, scenarios CIL and TIL. Task identity is known in training; in testing it is hidden
(CIL), or told, so answers are chosen among the classes of the task (TIL).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ianvs.base.errors import closest, one_line
from ianvs.base.seeding import generator
from ianvs.exam.scenarios.exam import Exam, Round, Rules, TestSet
from ianvs.exam.scenarios.request import Scenario, ScenarioRequest, class_labels, refuse
from ianvs.testenv.scenarios.mask_rounds import mask_rounds

NAME_LIMIT = 32  # characters in a round's name, the heading of a column of the score matrix


class ByClasses(Scenario):
    """Each round has classes of its own.

    rounds: how many. first: classes of the first round (B0/B50 style), the rest are cut evenly over the others. sizes:
    classes of each round instead, `[3, 2, 5]`. round_classes: names or indices of the classes of each round instead,
    `[[cat, dog], [bird], [cat]]`. A class may return: each of its rounds brings another share of its samples, drawn by
    `order_seed`, and a test set is of all classes of its round.
    class_order: names or indices; "alphabetical" (VOC's, ILOD); or "shuffled_123", numpy's legacy shuffle with that
    seed (CL-DETR; PyCIL's is shuffled_1993). order_seed: a seeded random order. Neither: the order of the class list.

    Where a sample may be of several classes (boxes, several labels), only those of the round are told. cut:
    "overlapping" (default): a round is of all samples with one of its classes, so a sample may come again (ILOD,
    Shmelkov et al. 2017; KRT, Dong et al. 2023); "disjoint": each sample comes once, drawn, a round has a share by the
    number of its classes (CL-DETR, Liu et al. 2023); "exclusive": once, in the last round that has one of its classes
    (PRS, Kim et al. 2020); "refined": samples have a class and maybe its superclass, which comes in an earlier round;
    of those with the same two, in their order, the first 60 % teach the superclass, the last 60 % the class (IIRC,
    Abdelsalam et al. 2021, and its code). tests: a test set is of "all" test samples (default), each asked once, or of
    those "containing" a class of its round, which hides false alarms elsewhere.

    Masks: `background` names the class of all that is nothing else ("background" by default), which the first round
    brings; in a round's masks every other class but its own is background, too. cut: "overlapping" (default): a round
    is of all images with a pixel of its classes; "disjoint": of those without a class of a later round; "sequential":
    of the same, and classes of earlier rounds keep their labels (Cermelli et al. 2020; Michieli & Zanuttigh 2019).
    """

    first: int | None = Field(None, ge=1)
    sizes: list[Annotated[int, Field(ge=1)]] | None = Field(None, min_length=1)
    round_classes: list[list[str | int]] | None = Field(None, min_length=1)
    class_order: list[str | int] | str | None = None
    order_seed: int | None = Field(None, ge=0)
    cut: Literal["overlapping", "disjoint", "sequential", "exclusive", "refined"] | None = None
    background: str | int | None = None
    tests: Literal["all", "containing"] | None = None

    @model_validator(mode="after")
    def _one_order(self) -> Self:
        how = [name for name in ("first", "sizes", "round_classes") if getattr(self, name) is not None]
        if len(how) > 1:
            raise ValueError(f"`{how[0]}` and `{how[1]}` both say how many classes a round has. Keep one of them.")
        if self.round_classes is not None and self.class_order is not None:
            raise ValueError("`round_classes` and `class_order` both say the order. Keep one of them.")
        if self.class_order is not None and self.order_seed is not None:
            raise ValueError("`class_order` and `order_seed` both say the order. Keep one of them.")
        if isinstance(self.class_order, str) and not re.fullmatch(r"alphabetical|shuffled_\d{1,9}", self.class_order):
            expected = "a list of all classes, alphabetical, or shuffled_SEED such as shuffled_123"
            raise ValueError(f"`class_order` is '{self.class_order}'; expected {expected}.")
        return self

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        for name in ("sizes", "round_classes"):
            if (given := getattr(self, name)) is not None:
                return name, len(given)
        return None

    def class_rounds(self, request: ScenarioRequest, scenario: str) -> tuple[tuple[Round, ...], tuple[TestSet, ...]]:
        """Return a round and a test set for each group of classes. scenario: its name in errors."""
        dataset, count = request.dataset, len(request.dataset.classes)
        if dataset.kind == "segmentation" and isinstance(self, ClassIncremental) and not self.task_given:
            return mask_rounds(self, request)
        if self.background is not None:
            refuse(request, "`background` is for masks, in class-incremental.", "background")
        if self.cut == "sequential":
            refuse(request, "`cut: sequential` is for masks, in class-incremental.", "cut")
        if dataset.kind == "segmentation":
            labels_required(request, scenario)
        held = request.data_type.membership(dataset.train.y, count)
        asked_of = request.data_type.membership(dataset.test.y, count)
        several = held is not None and asked_of is not None
        if held is not None and asked_of is not None:
            groups = self.class_groups(request)
            taught = self._taught(request, held, groups)
            tested = [np.flatnonzero(asked_of[:, classes].any(axis=1)) for classes in groups]
        else:
            for option in ("cut", "tests"):
                if getattr(self, option) is not None:
                    refuse(request, f"`{option}` is for samples of several classes; these have one each.", option)
            both, groups = labels_required(request, scenario), self.class_groups(request)
            taught, tested = ([np.flatnonzero(np.isin(y, classes)) for classes in groups] for y in both)
            if self.round_classes is not None:  # else no class comes in several rounds
                taught = self._shared(request, both[0], groups, taught)
        rounds, tests = [], []
        for classes, mine, containing in zip(groups, taught, tested, strict=True):
            name = group_name(request, classes)
            for part, positions in (("training", mine), ("test", containing)):
                if not len(positions):
                    remedy = "Raise `test_share` if that draws the test part, or add test samples of these classes."
                    if part == "training":
                        remedy = _only_tested(request, classes) or "Take classes without samples out of the list."
                    refuse(request, f"the round of {name} has no {part} samples. {remedy}")
            rounds.append(Round(name, mine, classes, limited=several))
            whole = several and self.tests != "containing"
            tests.append(TestSet(name, np.arange(len(dataset.test)) if whole else containing, classes))
        return tuple(rounds), tuple(tests)

    def _shared(
        self,
        request: ScenarioRequest,
        labels: NDArray[np.int64],
        groups: Sequence[tuple[int, ...]],
        taught: list[NDArray[np.int64]],
    ) -> list[NDArray[np.int64]]:
        """Return `taught` with the samples of classes that come in several rounds distributed over these in equal
        shares.
        """
        for index in sorted({c for classes in groups for c in classes}):
            rounds = [k for k, classes in enumerate(groups) if index in classes]
            if len(rounds) < 2:
                continue
            mine = np.flatnonzero(labels == index)
            if len(mine) < len(rounds):
                name = request.dataset.classes[index]
                message = f"the class '{name}' comes in {len(rounds)} rounds and has {len(mine)} training samples"
                refuse(request, f"{message}. Name it in as many rounds at most.", "round_classes")
            order = generator(self.order_seed or 0, index, "shares of a class that returns").permutation(mine)
            for k, share in zip(rounds, np.array_split(order, len(rounds)), strict=True):
                rest = np.setdiff1d(mine, share)
                taught[k] = np.setdiff1d(taught[k], rest)
        return taught

    def _taught(
        self, request: ScenarioRequest, held: NDArray[np.bool_], groups: Sequence[tuple[int, ...]]
    ) -> list[NDArray[np.int64]]:
        """Return positions of the training samples of each round."""
        within = np.stack([held[:, classes].any(axis=1) for classes in groups], axis=1)  # (N, T)
        if self.cut in (None, "overlapping"):
            return [np.flatnonzero(column) for column in within.T]
        if self.cut == "refined":
            given = self._refined(request, held, groups)
            return [np.flatnonzero(given[:, classes].any(axis=1)) for classes in groups]
        rounds = np.arange(len(groups))
        if self.cut == "exclusive":
            last = np.where(within, rounds, -1).max(axis=1)
            return [np.flatnonzero(last == number) for number in rounds]
        order = generator(self.order_seed or 0, 0, "disjoint pictures").permutation(len(held))
        ends = np.cumsum([len(classes) for classes in groups]) * len(order) // sum(map(len, groups))
        parts = np.split(order, ends[:-1])
        return [np.sort(part[within[part, number]]) for number, part in enumerate(parts)]

    def _refined(
        self, request: ScenarioRequest, held: NDArray[np.bool_], groups: Sequence[tuple[int, ...]]
    ) -> NDArray[np.bool_]:
        """Return (N, C) whether a sample teaches a class.

        Of two classes, the superclass is the one with more samples, or the first.
        """
        names, given = request.dataset.classes, held.copy()
        when = {index: k for k, classes in enumerate(groups) for index in classes}
        combinations, combination_of = np.unique(held, axis=0, return_inverse=True)
        for number, labels in enumerate(combinations):
            members = sorted(np.flatnonzero(labels).tolist(), key=lambda c: (-int(held[:, c].sum()), when[c]))
            if len(members) > 2:
                text = one_line([names[c] for c in members])
                refuse(request, f"`cut: refined` is for a class and its superclass; a sample has {text}.", "cut")
            if len(members) == 2:
                if when[members[0]] >= when[members[1]]:
                    text = (
                        f"'{names[members[1]]}' has the superclass '{names[members[0]]}', which does not come before it"
                    )
                    refuse(
                        request, f"{text}. Say the order by `class_order`, and `rounds` that part them.", "class_order"
                    )
                rows = np.flatnonzero(combination_of.ravel() == number)
                share = len(rows) * 3 // 5
                given[rows[share:], members[0]] = given[rows[: len(rows) - share], members[1]] = False
        return given

    def class_groups(self, request: ScenarioRequest) -> list[tuple[int, ...]]:
        """Return the classes of each round."""
        if self.round_classes is not None:
            return self._listed_groups(request, self.round_classes)
        order = self.ordered_classes(request)
        ends = np.cumsum(self.sizes_of(request, len(order))).tolist()
        return [tuple(order[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    def ordered_classes(self, request: ScenarioRequest) -> list[int]:
        """Return all class indices in the order given by the options."""
        names = request.dataset.classes
        if self.round_classes is not None:
            return list(dict.fromkeys(c for group in self.class_groups(request) for c in group))
        if self.class_order is None:
            if self.order_seed is None:
                return list(range(len(names)))
            return [int(i) for i in np.random.default_rng(self.order_seed).permutation(len(names))]
        if isinstance(self.class_order, str):
            if self.class_order == "alphabetical":
                return sorted(range(len(names)), key=lambda position: names[position])
            seed = int(self.class_order.removeprefix("shuffled_"))
            return [int(i) for i in np.random.RandomState(seed).permutation(len(names))]
        index = {name: position for position, name in enumerate(names)}
        order = [_position(request, item, "class_order") for item in self.class_order]
        if sorted(order) != list(range(len(names))):
            missing = one_line([name for name in names if index[name] not in order])
            twice = one_line([names[i] for i in sorted(set(order)) if order.count(i) > 1])
            message = f"missing: {missing or 'none'}; more than once: {twice or 'none'}."
            refuse(request, f"`class_order` names every class once; {message}", "class_order")
        return order

    def _listed_groups(self, request: ScenarioRequest, listed: list[list[str | int]]) -> list[tuple[int, ...]]:
        """Return `round_classes` as indices. Every class is in at least one round, and not twice in the same round."""
        names = request.dataset.classes
        groups = [tuple(_position(request, item, "round_classes") for item in items) for items in listed]
        for number, group in enumerate(groups, start=1):
            if not group or len(set(group)) < len(group):
                problem = "names a class twice" if group else "has no class"
                refuse(request, f"round {number} of `round_classes` {problem}.", "round_classes")
        if missing := [name for c, name in enumerate(names) if not any(c in group for group in groups)]:
            message = f"`round_classes` names every class once or more; missing: {one_line(missing)}."
            refuse(request, message, "round_classes")
        return groups

    def sizes_of(self, request: ScenarioRequest, count: int) -> list[int]:
        if self.sizes is not None:
            if sum(self.sizes) != count:
                sizes = " + ".join(map(str, self.sizes))
                refuse(request, f"`sizes` has {sizes} = {sum(self.sizes)} classes, and the data have {count}.", "sizes")
            return self.sizes
        rounds = request.rounds
        if rounds is None:
            refuse(request, f"say how many `rounds` the {count} classes arrive in.")
        first = self.first
        if first is None:
            if count % rounds:
                fitting = one_line([n for n in range(1, count + 1) if count % n == 0])
                message = f"{count} classes can't be cut into {rounds} equal rounds."
                why = _only_tested(request, range(len(request.dataset.classes)))
                why = f" {why}" if why else ""
                refuse(request, f"{message} `rounds` can be {fitting}; or set `first`.{why}", "rounds")
            return [count // rounds] * rounds
        rest, others = count - first, rounds - 1
        fits = rest == 0 if others == 0 else rest > 0 and rest % others == 0
        if not fits:
            fitting = one_line([1 + n for n in range(1, rest + 1) if rest % n == 0]) or "1 with `first` = " + str(count)
            message = (
                f"after a first round of {first}, the other {rest} of {count} classes can't be cut into {others} equal "
                f"rounds. With `first: {first}`, `rounds` can be {fitting}."
            )
            refuse(request, message, "first")
        return [first] + [rest // others for _ in range(others)]


def _only_tested(request: ScenarioRequest, classes: Iterable[int]) -> str:
    """Return which of `classes` only the test part has, the first of their samples, and the remedy; "" for none."""
    dataset = request.dataset
    train, test = class_labels(dataset.train), class_labels(dataset.test)
    if train is None or test is None:
        return ""
    only = sorted({*classes} & {*np.unique(test).tolist()} - {*np.unique(train).tolist()})
    if not only:
        return ""
    rows = np.flatnonzero(np.isin(test, only))
    verb = "is" if len(only) == 1 else "are"
    samples = "a test sample" if len(rows) == 1 else f"{len(rows)} test samples"
    return (
        f"{one_line([dataset.classes[index] for index in only])} {verb} in the test part only ({samples}, the first is "
        f"'{dataset.test.ids[rows[0]]}'): take these out of it, look at how the labels are written, or add training "
        "samples of the class."
    )


def _position(request: ScenarioRequest, item: str | int, option: str) -> int:
    """Return the index of a class that is given by name or number in the option `option`."""
    names = request.dataset.classes
    # A number is first looked up as a name, for classes that are called "1", "2", ...
    position = names.index(str(item)) if str(item) in names else item if isinstance(item, int) else -1
    if not 0 <= position < len(names):
        refuse(request, f"there is no class '{item}'.{closest(str(item), names)}", option)
    return position


class ClassIncremental(ByClasses):
    """Rounds of disjoint classes, one test set for the classes of each round."""

    names: ClassVar[tuple[str, ...]] = ("class-incremental", "CIL")
    task_given: ClassVar[bool] = False  # whether the task is known in testing

    def build(self, request: ScenarioRequest) -> Exam:
        rounds, tests = self.class_rounds(request, self.names[0])
        space = "task" if self.task_given else "seen"
        rules = Rules(self.names[0], task_in_training=True, task_in_testing=self.task_given, output_space=space)
        return Exam(request.dataset, rounds, tests, rules)


class TaskIncremental(ClassIncremental):
    """The rounds of class-incremental; the task is told in testing too, and answers are chosen among its classes."""

    names: ClassVar[tuple[str, ...]] = ("task-incremental", "TIL")
    task_given: ClassVar[bool] = True

    def build(self, request: ScenarioRequest) -> Exam:
        exam = super().build(request)
        if any(round_.limited for round_ in exam.rounds):
            message = "task-incremental needs one class per sample: these would be asked once for each of their tasks"
            refuse(request, f"{message}, and answered differently. Use class-incremental.")
        return exam


def group_name(request: ScenarioRequest, classes: tuple[int, ...]) -> str:
    """Return the name of a round with these classes."""
    names = [request.dataset.classes[index] for index in classes]
    joined = "+".join(names)
    return joined if len(joined) <= NAME_LIMIT else f"{names[0]}+{len(names) - 1} more"


def labels_required(request: ScenarioRequest, feature: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class indices of (train, test), or raise an error if there are none; `feature` is what needs them."""
    dataset = request.dataset
    train, test = class_labels(dataset.train), class_labels(dataset.test)
    if train is None or test is None:
        message = (
            f"{feature} needs one class per sample; {dataset.name} is a {dataset.kind} dataset. "
            "Use domain-incremental or instance-incremental."
        )
        refuse(request, message)
    return train, test
