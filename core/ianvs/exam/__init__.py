"""Labelled data -> rounds, test sets, rules; and how answers are asked for and measured.

From outside: `data` (load, Source), `scenarios` (open_exam, the views of plugins), `kinds` (what differs between kinds
of data), `paradigms` (how a case is examined), `metrics` (resolve, score_metric, matrix_metric). Nothing particular.
"""
