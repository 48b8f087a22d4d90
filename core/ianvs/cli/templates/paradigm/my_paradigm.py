"""MyParadigm trains on every n-th round only, as when labels are expensive."""

from ianvs.exam.paradigms import Measure, Options, Paradigm


class MyOptions(Options):
    """The keys that the paradigm adds to algorithm.yaml, with their types and defaults."""

    skipped_rounds: int = 1  # rounds without training after each round with training


class MyParadigm(Paradigm):
    name = "my_paradigm"
    options = MyOptions
    measures = {"learnt_samples": Measure("Samples trained on, in all rounds.")}  # each is a column

    def train(self, step, session):
        """Train in one round, counted from 1. The model is evaluated on all test sets after each round."""
        if (step - 1) % (session.options.skipped_rounds + 1):
            return
        model = session.module("basemodel")  # an object of the class that algorithm.yaml names
        for data in session.feed(step):  # the training data of the round, under the rules of the exam
            session.measure("learnt_samples", len(data))
            session.call(model, "train", data)  # measures the time and passes the context that train() names
