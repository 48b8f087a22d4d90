"""One case in its process, around the loop in ianvs/running/loop.py.

case.py               from the request to complete answers
stored_answers.py     which answers are missing; from complete ones to the result
scorer_process.py     the process that scores the cases of a run
failing.py            what is stored of an exception, or of too much memory
exams.py              builds an exam from its data, once for all its cases
contract_case.py      a case that another contract runs by itself

Who takes part in the loop:
case_learner.py       what a case asks of a learner, wherever the author's code runs
learner.py            the author's objects in this process: trained, asked, saved, restored
session.py            what a paradigm works with: its modules, the rounds, the context of a call
generators.py         the global random generators: started, read, restored
modules.py            authors' objects by type: made, saved, loaded, and what each was taught
training_source.py    the training data: what may be had, when; examines between the chunks of a stream
feed.py               rounds as data: shares, chunks, held-out parts
examination.py        what is asked after a round, in which order, and what is kept of the answers
checked_answers.py    whether answers have the form that the exam asks for
known_replies.py      replies that were given before, or by a model server
gate.py               model_eval: whether a new model may stay
round_summary.py      the costs and messages of a round
stored_rounds.py      the rounds in the folder of the case
reporting.py          how far the case is, for the supervisor and for `ianvs status`

In sandboxes:
sandboxed_learner.py  takes part in the loop with author's code in a sandbox for each round and each examination
sandbox_client.py     the case's end of one sandbox: what it is served, and the form of what comes back
sandbox_worker.py     the other end: holds the learner, answers calls

Streams that are asked before they are told (`prequential`):
stream_keeper.py      which chunk is asked, what its first answer was, what is told
asked_stream.py       the learner's side of it
stream_order.py       after which delay and cost something is told
stream_journal.py     first answers on disk, before anything is told
stream_scores.py      what is known of the stream, for metrics

What is watched:
measure.py            time, sizes
network_size.py       parameters and operations of the networks that a learner predicts with
memory_meter.py       the memory of the case and its limit
state_digest.py       whether an examination has changed the learner
saving.py             whether objects that load what was saved answer as the learner did
own_folder.py         the learner's own folder, which goes with the round
"""
