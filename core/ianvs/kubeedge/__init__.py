"""The plugin API `contract: ianvs`: unmodified plugins of KubeEdge Ianvs, which receive paths and words.

A case is a `Work`. `run.run` runs it in one process, `scores.score` scores it in another, and `run.problems` checks it
in a third. None of these may be called in a process with other cases: the provided `sedna` is installed for the whole
life of the process.
"""
