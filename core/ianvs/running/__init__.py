"""What runs next, and one case in its process.

From outside: `inspector` (what must be known of authors' files), `planning` (make_plan, Plan), `scheduler` (run_job,
preflight), `loop` (the rounds of one case), `session` (who takes part in them), `scoring` (score_case), `next_trials`
(what a search tries next). Not called `run`: `ianvs.run` is the function.
"""
