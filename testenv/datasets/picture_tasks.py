"""The source `picture_tasks`: generated images, and questions about them, task after task.

An image of 32 x 32 pixels shows one to three equal things in a corner: shape, colour, corner and number are drawn
independently. Every task has its own images and asks about one property: the shape, the colour, the corner (one of four
lettered choices, in another order in each question, or a word), whether it has a colour, its position (a box), or the
number of things.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ianvs.base.lazy_images import MARK, Picture
from ianvs.exam.data.conversation_forms import Conversation
from ianvs.testenv.datasets.generated_talk import GeneratedTalk

VERSION = 2  # increase it when the same options give other samples
SIDE, CELL = 32, 8  # pixels of an image, and of a cell; each thing lies in one cell
SHAPES = ("square", "disc", "triangle", "cross")
COLOURS = {"red": (220, 50, 50), "green": (50, 190, 70), "blue": (60, 90, 230), "yellow": (230, 210, 60)}
CORNERS = {"top left": "northwest", "top right": "northeast", "bottom left": "southwest", "bottom right": "southeast"}
TASKS = ("shape", "colour", "corner", "yes-no", "box", "count")
ONE_WORD = ("shape", "colour", "corner")  # tasks that are possible with `instruction: same`
QUESTIONS = {
    "shape": ("Which shape is it?", "Answer with the name of the shape."),
    "colour": ("Which colour has it?", "Answer with the name of the colour."),
    "corner": ("In which corner is it?", "Answer with the letter of the choice."),
    "yes-no": ("Is it {}?", "Answer with yes or no."),
    "box": ("Where does it lie?", "Answer with its box in twelfths, [x0, y0, x1, y1]."),
    "count": ("How many are there?", "Answer with a number."),
}
WORD, SAME = "Answer with the name of the corner.", "Describe it with one word."
SHARED = "Answer the question with a letter."
_DARK = 16  # levels of red, green and blue from which the ground colour is drawn


class _Thing:
    """Content of an image: index of shape, colour and corner; count. places: positions of the cells in its corner."""

    def __init__(self, number: int, draw: np.random.Generator) -> None:
        self.shape, self.colour, self.corner = number % 4, number // 4 % 4, number // 16 % 4
        self.count = 1 + number // 64 % 3
        top, left = divmod(self.corner, 2)
        chosen = sorted(draw.permutation(4)[: self.count].tolist())
        self.places = [(2 * CELL * top + CELL * (c // 2), 2 * CELL * left + CELL * (c % 2)) for c in chosen]
        self.ground = draw.integers(0, _DARK, 3).tolist()

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """Return the image, (32, 32, 3) uint8."""
        image = np.full((SIDE, SIDE, 3), self.ground, np.uint8)
        for y, x in self.places:
            image[y : y + CELL, x : x + CELL][_stencil(SHAPES[self.shape])] = [*COLOURS.values()][self.colour]
        return image

    @property
    def box(self) -> str:
        """Return the smallest box around all things, in twelfths."""
        y, x = (np.array(values) for values in zip(*self.places, strict=True))
        low, high = (
            [12 * values.min() // SIDE for values in (x, y)],
            [-(-12 * (values.max() + CELL) // SIDE) for values in (x, y)],
        )
        return str([int(corner) for corner in (*low, *high)])


def _stencil(shape: str) -> NDArray[np.bool_]:
    """Return (8, 8) whether a pixel belongs to the thing."""
    y, x = np.mgrid[:CELL, :CELL] - 3.0
    masks: NDArray[np.bool_] = {
        "square": (abs(x) <= 3) & (abs(y) <= 3),
        "disc": (x**2 + y**2 <= 11) & (x**2 + y**2 > 2),
        "triangle": (abs(x) <= (y + 3) / 2) & (y <= 3),
        "cross": ((abs(x) <= 1) | (abs(y) <= 1)) & (abs(x) <= 3) & (abs(y) <= 3),
    }[shape]
    return masks


class PictureTasks(GeneratedTalk):
    """tasks: how many of shape, colour, corner, yes-no, box and count, or their names; each is a domain. samples: of a
    task for training; half as many test. instruction: each task has a last line of its "own", or all have the "same"
    question, to which shape, colour and corner contradict each other. format: "own", or a "shared" one, a letter of
    four choices in every task; "word", its own, and the corner by its name, such as northwest, instead of a letter."""

    summary: ClassVar[str] = "generated images, and conversations about them, task after task"
    title: ClassVar[str] = "picture_tasks"
    generator: ClassVar[int] = VERSION
    note: ClassVar[str] = "The images are generated: shapes of 7 pixels on a dark ground."
    domain: ClassVar[str] = "task"
    repeats: ClassVar[bool] = False

    tasks: int | list[str] = 4
    samples: int = Field(256, ge=8)
    seed: int = Field(0, ge=0)
    instruction: Literal["own", "same"] = "own"
    format: Literal["own", "shared", "word"] = "own"

    @model_validator(mode="after")
    def _check_tasks(self) -> Self:
        choices = ONE_WORD if self.instruction == "same" else TASKS
        wrong = self.tasks not in range(1, len(choices) + 1) if isinstance(self.tasks, int) else not self.tasks
        if wrong or len(set(self.names)) != len(self.names) or not set(self.names) <= set(choices):
            raise ValueError(f"`tasks` is {self.tasks}; it is 1 to {len(choices)}, or some of: {', '.join(choices)}.")
        if self.instruction == "same" and self.format == "shared":
            raise ValueError("`instruction: same` asks for a word, `format: shared` for a letter. Keep one of them.")
        return self

    @property
    def names(self) -> list[str]:
        return list(TASKS[: self.tasks]) if isinstance(self.tasks, int) else self.tasks

    def conversations(self, part: str) -> Iterator[tuple[str, Conversation]]:
        """Yield (task, conversation) of "train" or "test". All kinds of things come equally often, in random order."""
        for task in self.names:
            draw = np.random.default_rng([self.seed, TASKS.index(task), ("train", "test").index(part)])
            order = np.tile(np.arange(192), 1 + self.samples // 192)[: self.samples // (1 if part == "train" else 2)]
            kinds = draw.permutation(192)[order]
            for number, kind in enumerate(draw.permutation(kinds).tolist()):
                thing = _Thing(kind, draw)
                question, reply = self._turn(task, thing, number, draw)
                yield (
                    task,
                    Conversation(None, (f"{MARK}\n{question}",), (reply,), "", (Picture.from_value(thing.pixels),)),
                )

    def _turn(self, task: str, thing: _Thing, number: int, draw: np.random.Generator) -> tuple[str, str]:
        """Return (question, right reply)."""
        colours, question, last = list(COLOURS), *QUESTIONS[task]
        colour = colours[thing.colour if number % 2 == 0 else (thing.colour + 1 + int(draw.integers(3))) % 4]
        right, others = {
            "shape": (SHAPES[thing.shape], SHAPES),
            "colour": (colours[thing.colour], colours),
            "corner": ([*CORNERS][thing.corner], list(CORNERS)),
            "yes-no": ("yes" if number % 2 == 0 else "no", ("yes", "no")),
            "box": (thing.box, ()),
            "count": (str(thing.count), tuple("1234")),
        }[task]
        if self.instruction == "same":
            return SAME, CORNERS.get(right, right)
        question = question.format(colour)
        if task == "corner" and self.format == "word":
            return f"{question}\n{WORD}", CORNERS[right]
        if task != "corner" and self.format != "shared":
            return f"{question}\n{last}", right
        wrong = [reply for reply in others if reply != right] or _other_boxes(thing, draw)
        choices = [right, *wrong]
        choices = [choices[i] for i in draw.permutation(len(choices))]
        listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip("ABCD", choices, strict=False))
        last = SHARED if self.format == "shared" else last
        return f"{question}\n{listed}\n{last}", "ABCD"[choices.index(right)]


def _other_boxes(thing: _Thing, draw: np.random.Generator) -> list[str]:
    """Return three wrong boxes, each of a thing in another corner."""
    number = thing.shape + 4 * thing.colour + 64 * (thing.count - 1)
    return [_Thing(number + 16 * corner, draw).box for corner in range(4) if corner != thing.corner]
