"""What all of ianvs stands on, and what imports nothing of it but itself.

`types` (the vocabulary of results), `errors`, `digests` (what was stored is as it was), `seeding` (random streams by
purpose), `garbage`, `package` and `shipped` (our own files), `secrets`, `visible_text`.
"""
