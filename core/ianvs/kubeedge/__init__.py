"""The second calling convention, `contract: ianvs`: plugins of KubeEdge Ianvs as they are, handed paths and words.

A case is a `Work`. In a process of its own `run.run` runs it, in another `scores.score` scores it, and in a third
`run.problems` tells beforehand what would stop it. None of these may be called where other cases live: the
provided `sedna` is installed for the whole life of the process.
"""
