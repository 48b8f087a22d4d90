"""Questions of a stream, and what is told of the answers, as systems with memory are handed them."""

import numpy as np

from ianvs.exam.data.parts import column_in_memory
from ianvs.exam.scenarios.feedback_view import FeedbackView
from ianvs.exam.scenarios.views import TestView


def texts(*values):
    return np.array(values, dtype=object)


def view(*questions):
    return TestView(column_in_memory(texts(*questions)), name="questions")


def told(questions, answers, feedback, kind="label"):
    columns = {
        "x": column_in_memory(texts(*questions)),
        "answers": column_in_memory(texts(*answers)),
        "told": column_in_memory(np.array(feedback)),
    }
    return FeedbackView(columns, kind=kind, name="questions", episodes=np.arange(len(questions)))
