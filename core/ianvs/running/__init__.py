"""Runs jobs: what runs next, and one case in its process.

From outside: `inspector` (facts about authors' files), `planning` (make_plan, Plan), `scheduler` (run_job, preflight),
`loop` (the rounds of one case), `session` (its participants), `scoring` (score_case), `next_trials` (what a search
tries next). It is not called `run`, since `ianvs.run` is the function.
"""
