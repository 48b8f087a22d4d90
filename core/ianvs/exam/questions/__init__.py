"""Evaluation tasks: what the model computes besides predictions. A task is a class, in an entry point or a `url`."""

from ianvs.exam.questions.question import ENTRY_POINTS, About, Question, on_host, question, questions_of

__all__ = ["ENTRY_POINTS", "About", "Question", "on_host", "question", "questions_of"]
