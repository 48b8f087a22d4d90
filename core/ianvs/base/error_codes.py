"""The codes of validation errors: one for each kind of mistake, whatever its message says.

Tests and editors go by the code, people by the message. A code that is released keeps its meaning. mypy refuses one
that is not in the list, and tests/snapshots has an example of each.
"""

from typing import Literal

ErrorCode = Literal[
    "unspecified",  # A check that gives no code: of a package that is not part of ianvs, or not converted yet.
    # --- files and paths ---
    "missing-file",  # A file or folder that is named does not exist.
    "wrong-path-type",  # A folder where a file belongs, a file where a folder belongs, or a file of another type.
    "unreadable-file",  # A file that the operating system does not let us read, or that is far too large.
    "invalid-encoding",  # A text file that is not UTF-8, or has a character that YAML excludes.
    "empty-file",  # A file with nothing in it.
    "invalid-path",  # A value that can't be a path.
    "unset-variable",  # An environment variable that a file needs is not set.
    "invalid-variable",  # `${` that does not begin a variable.
    # --- yaml ---
    "invalid-yaml",  # The text breaks the grammar of YAML.
    "unsupported-yaml",  # Valid YAML that is not read: tags, several documents, keys that are not text.
    "duplicate-key",  # A key is given twice.
    "wrong-file-kind",  # A job, testenv or algorithm file where another one of the three belongs.
    "misplaced-key",  # A key that is known elsewhere: beside the section that it belongs in, or in another file.
    "unknown-key",  # A key that nothing reads.
    "missing-key",  # A key that is needed is not given.
    "wrong-type",  # A value of another YAML type than the key takes.
    "empty-value",  # A value or list with nothing in it where something is needed.
    "wrong-length",  # A list of another length than the key takes.
    "out-of-range",  # A number above or below what the key takes.
    "invalid-choice",  # A value that is not among those that the key takes.
    "invalid-value",  # A value of the right type that the key can't take for another reason.
    "duplicate-entry",  # Two entries of a list, or two names, that have to differ are equal.
    "conflicting-keys",  # Keys or values that exclude or contradict each other.
    "unknown-reference",  # A name that should be defined elsewhere in the job, and is not.
    "renamed-key",  # Warning: an old name of a key.
    "no-effect",  # Warning: what is given is accepted, and changes nothing.
    # --- command line ---
    "invalid-argument",  # An argument or option of a command, or of a function, that it can't use.
    "unknown-name",  # A name that nothing stored or installed has.
    "ambiguous-name",  # A name, or none, where several stored things may be meant.
    "existing-output",  # What is to be written is there already, or would change what is only read.
    "unwritable-file",  # A file or folder that the operating system does not let us write.
    "too-many-cases",  # A grid so large that it is hardly meant.
    "invalid-override",  # A `--set` that is not KEY=VALUE, or whose key leads nowhere.
    "no-matching-case",  # A selection of cases that fits none.
    # --- data ---
    "missing-data",  # A dataset names no data, or lacks its training or test part.
    "unknown-domain",  # `using` names a domain that the dataset does not have.
    "damaged-dataset",  # The files of a dataset are incomplete or contradict each other: unpack or write them again.
    "unreadable-data",  # A file of samples that can't be read.
    "invalid-record",  # A record, row or line of samples that can't be used.
    "empty-dataset",  # A file of samples without a sample.
    "missing-column",  # Samples without a column, array or field that the job names or needs.
    "unknown-class",  # A label that is none of the classes, or a class that the dataset does not have.
    "ambiguous-data",  # Samples or labels that can be read in several ways, until a key of the dataset says which.
    "mismatched-data",  # Parts, files or samples that have to be alike, or fit each other, and do not.
    "invalid-array",  # An array of samples or labels whose numbers or shape can't be used.
    "unfit-key",  # A key of the dataset that has no meaning for its samples.
    "doubtful-data",  # Warning: samples that look as if they were not meant so.
    "invalid-hierarchy",  # The tree over the classes is no tree.
    # --- scenario and rounds ---
    "unknown-scenario",  # The scenario can't be found or loaded.
    "invalid-scenario",  # Options of a scenario that contradict each other or the data.
    "round-count-conflict",  # Several settings give different numbers of rounds.
    "unfit-exam",  # A setting that needs something that the scenario or the data of this exam do not have.
    "duplicate-exam",  # Two testenvs that are the same exam.
    "leaking-protocol",  # A protocol whose test samples would be taught before they are tested.
    # --- metrics and ranking ---
    "unknown-metric",  # A metric that is not built in and has no url, or can't be loaded.
    "unknown-option",  # An option that the metric, engine or other part does not take.
    "missing-option",  # An option that the metric, engine or other part needs.
    "invalid-option",  # An option with a value that the part can't take.
    "unfit-metric",  # A metric that does not fit where it is used.
    "unrequested-scores",  # A metric that needs something that the testenv does not ask for.
    "missing-predictions",  # A metric that needs predictions that finished cases did not store.
    "duplicate-column",  # Two metrics that would give the same column.
    "unknown-column",  # A name of a column that the leaderboard does not have, or has several times.
    "doubtful-unit",  # Warning: a published score that looks like a percentage.
    "invalid-selection",  # `select` has nothing to choose on, or nothing left to report.
    # --- algorithms and plugins ---
    "invalid-result",  # What a function or method of a plugin returned is not what it should return.
    "broken-rule",  # A plugin reached for what the rules of its exam do not allow, or went over its budget.
    "unloadable-plugin",  # A file, class or package of a plugin that can't be imported.
    "broken-contract",  # A plugin that lacks a method or argument of its contract, or does not keep its promise.
    "invalid-syntax",  # A file that is not Python.
    "unknown-hyperparameter",  # A hyperparameter that the class, or any algorithm of the job, does not take.
    "missing-hyperparameter",  # A hyperparameter that the class needs and the file does not give.
    "refused-arguments",  # A plugin whose constructor refuses the values of a case, or that refuses the exam.
    "doubtful-arguments",  # Warning: values that a plugin accepts and calls doubtful.
    "missing-module",  # A module that the paradigm needs is not listed.
    "unfit-module",  # A module, or setting of one, that the paradigm can't use.
    "unfit-paradigm",  # A paradigm that can't answer what the testenv asks for.
    "mixed-contracts",  # Algorithms of one job that are under different contracts.
    "unsupported-by-contract",  # A setting that the contract of the algorithms can't keep.
    "missing-name",  # A name that a plugin imports from a file beside it is not defined there.
    "missing-package",  # A package that is needed is not installed.
    "unregistered-name",  # A file does not register the name that the algorithm gives.
    "rewritten",  # Warning: a key in the form of KubeEdge Ianvs is read as one of ours.
    "invalid-interpreter",  # An interpreter or environment that can't run the plugin.
    "missing-path",  # Warning: a hyperparameter looks like a path, and does not exist.
    "unknown-task-or-type",  # An evaluation task or data type that can't be found.
    "failed-plugin",  # Code of a plugin raised an exception, or ended its process.
    "invalid-request",  # A plugin, or its process, asks for a round, share, row or name that there is not.
    # --- running ---
    "damaged-file",  # A stored file that is cut off, was changed, or is of another version.
    "changed-since-plan",  # Source files were edited between the plan of a job and its run.
    "job-in-progress",  # Something that waits until a run in the same workspace has ended.
    "invalid-engine",  # An engine that can't be loaded, or can't do what the job asks for.
    "missing-device",  # A device that the job names is not there.
    "insufficient-resources",  # A case needs more than the machine has.
    "unreachable-server",  # A server that the job names does not answer.
    "invalid-reference-run",  # An algorithm that can't be a reference.
    "invalid-published",  # `published` does not fit the job.
    "invalid-search",  # A search that can't work with this job.
    "missing-results",  # Nothing is stored of what a command needs.
    "unfit-results",  # Stored results, or a table of them, that can't be compared or merged as they are.
    "doubtful-search",  # Warning: a search that can't do what it is for.
    "doubtful-ranking",  # Warning: a ranking that favours what it should not.
]
