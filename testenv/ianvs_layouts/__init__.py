"""Tiny data and substitutes for missing resources of the examples in a checkout of KubeEdge Ianvs, to see whether they
run.

Scores on them say nothing about a method. `ianvs examples` uses them; docs/ianvs.md lists what is substituted.
"""
