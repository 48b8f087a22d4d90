"""Questions of a stream, and what is told of the answers, as systems with memory are handed them."""

import numpy as np

from ianvs.exam.data.parts import in_hand
from ianvs.exam.scenarios.feedback_view import Told
from ianvs.exam.scenarios.views import TestView


def texts(*values):
    return np.array(values, dtype=object)


def view(*questions):
    return TestView(in_hand(texts(*questions)), name="questions")


def told(questions, answers, feedback, kind="label"):
    columns = {
        "x": in_hand(texts(*questions)),
        "answers": in_hand(texts(*answers)),
        "told": in_hand(np.array(feedback)),
    }
    return Told(columns, kind=kind, name="questions", episodes=np.arange(len(questions)))
