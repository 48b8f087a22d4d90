"""What the model computes besides predictions. A question is a class, found by an entry point or an author's `url`."""

from ianvs.exam.questions.question import ENTRY_POINTS, About, Question, on_host, question, questions_of

__all__ = ["ENTRY_POINTS", "About", "Question", "on_host", "question", "questions_of"]
