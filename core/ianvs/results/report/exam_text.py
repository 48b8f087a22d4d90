"""Describes an exam as text: the content of each round and test set, and what a learner may see."""

from ianvs.base.errors import one_line
from ianvs.exam.scenarios.exam import Exam, Round, TestSet

_CLASSES = 10  # limit of class names in a list


def exam_text(name: str, exam: Exam) -> str:
    """Return plain text with a table of rounds, one of test sets, and the rules."""
    from tabulate import tabulate

    dataset = exam.dataset
    rounds = [
        [k, round_.name, len(round_.train), _classes(exam, round_), _training_labels(round_)]
        for k, round_ in enumerate(exam.rounds, 1)
    ]
    tests = [
        [test.name, len(test.test), _classes(exam, test), "" if test.adapt is None else f"{len(test.adapt)} samples"]
        for test in exam.tests
    ]
    blocks = [
        f"{name}: {dataset.name}, {len(dataset.train)} training and {len(dataset.test)} test samples",
        *(f"  {line}" for line in _rules(exam)),
        tabulate(rounds, ["Round", "Name", "Samples", "Classes", "Labels"], disable_numparse=True),
        "",
        tabulate(tests, ["Test set", "Samples", "Classes", "Adapted on"], disable_numparse=True),
        "",
    ]
    return "\n".join(blocks)


def _rules(exam: Exam) -> list[str]:
    rules, stream = exam.rules, exam.stream
    shape, layout = exam.dataset.train.x.shape[1:], exam.dataset.layout
    shown = {True: "shown", False: "hidden"}
    spaces = {"all": "all classes", "seen": "the classes seen so far", "task": "the classes of the task"}
    lines = [
        f"task identity: {shown[rules.task_in_training]} in training, {shown[rules.task_in_testing]} in testing",
        f"answers: among {spaces[rules.output_space]}" if exam.dataset.classes else "answers: texts",
        f"passes over the data: {'any number' if rules.passes is None else rules.passes}",
    ]
    if layout:
        lines.append(f"pictures: {shape[0]} x {shape[1]} pixels, {shape[2]} channels, read as {layout}")
    if stream is not None:
        every = "" if stream.eval_every is None else f", examined every {stream.eval_every} samples too"
        lines.append(f"a stream in chunks of {stream.batch} that do not tell where a round ends{every}")
    if rules.test_sets == "future":
        lines.append("asked: only test sets of rounds to come")
    return lines


def _classes(exam: Exam, part: Round | TestSet) -> str:
    names = [exam.dataset.classes[index] for index in part.classes]
    return one_line(names) if len(names) <= _CLASSES else f"{len(names)} classes"


def _training_labels(round_: Round) -> str:
    if round_.labels is None:
        return "shown"
    withheld = int((round_.labels == -1).sum())
    return "withheld" if withheld == len(round_.labels) else f"changed, {withheld} withheld"
