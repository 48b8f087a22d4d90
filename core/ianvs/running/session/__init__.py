"""One case in its process, around the loop in ianvs/running/loop.py.

case.py               from the request to complete predictions
resume_check.py       which predictions are missing; scores complete ones
scorer_process.py     the process that scores the cases of a run
case_failure.py            what is stored of an exception, or of too much memory
exams.py              builds an exam from its data, once for all its cases
contract_case.py      a case that another contract runs by itself

Parts of the loop:
case_learner.py       the interface to a learner, wherever the plugin's code runs
learner.py            the plugin's objects in this process: trained, evaluated, saved, restored
session.py            the session of a paradigm: its modules, the rounds, the context of a call
generators.py         the global random generators: started, read, restored
modules.py            plugin objects by type: created, saved, loaded, with the classes that each was trained on
training_source.py    serves training data under the rules; evaluates between the chunks of a stream
feed.py               rounds as data: shares, chunks, held-out parts
examination.py        evaluates after a round: the order of samples, and the stored predictions
validate_predictions.py  checks the form of predictions
known_replies.py      replies from the cache, or from a model server
gate.py               model_eval: whether a new model replaces the old one
round_summary.py      the costs and messages of a round
stored_rounds.py      reads and writes the rounds in the case's folder
reporting.py          progress for the supervisor and for `ianvs status`

In sandboxes:
sandboxed_learner.py  a learner whose code runs in a sandbox for each round and each evaluation
sandbox_client.py     the case's end of one sandbox: serves data, checks the form of results
sandbox_worker.py     the other end: holds the learner, answers calls

Prequential streams, which are predicted before their labels are revealed:
prequential_server.py  chunks to predict, first predictions, revealed labels
prequential_stream.py  the learner's side of it
stream_order.py       delay and cost: when a chunk is revealed
stream_journal.py     first predictions on disk, before labels are revealed
stream_scores.py      scores, feedback and facts of the stream's samples

Measurements and checks:
measure.py            time, sizes
network_size.py       parameters and operations of the networks that a learner predicts with
memory_meter.py       the memory of the case and its limit
state_digest.py       whether an evaluation changed the learner
save_load_check.py    whether the learner predicts the same after save() and load()
plugin_folder.py      the learner's folder for files, stored with each round
"""
