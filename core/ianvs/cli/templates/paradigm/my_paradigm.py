"""MyParadigm: how a case is examined. This one learns a round and then lets some go by, as where labels are dear."""

from ianvs.exam.paradigms import Measure, Options, Paradigm


class MyOptions(Options):
    """The keys that the paradigm adds to algorithm.yaml, with their types and defaults."""

    rest: int = 1  # rounds that are not learnt after one that is


class MyParadigm(Paradigm):
    name = "my_paradigm"
    options = MyOptions
    measures = {"learnt_samples": Measure("Training samples that were learnt, in all rounds.")}  # each is a column

    def train(self, step, session):
        """Called once a round, the first is 1; the model answers the test sets of all rounds after each."""
        if (step - 1) % (session.options.rest + 1):
            return
        model = session.module("basemodel")  # an object of the class that algorithm.yaml names
        for data in session.feed(step):  # the training data of the round, under the rules of the exam
            session.measure("learnt_samples", len(data))
            session.call(model, "train", data)  # takes the time, and hands it what train() names of the context
