"""What a model is asked beside its answers: a question is one file, found by an entry point or by an author's `url`."""

from ianvs.exam.questions.question import ENTRY_POINTS, About, Question, on_host, question, questions_of

__all__ = ["ENTRY_POINTS", "About", "Question", "on_host", "question", "questions_of"]
