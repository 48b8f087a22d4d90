"""Tiny data and stand-ins for the examples of a checkout of KubeEdge Ianvs: enough to see whether they run.

Scores on them say nothing of a method. `ianvs examples` uses them; docs/ianvs.md names what is made of what.
"""
