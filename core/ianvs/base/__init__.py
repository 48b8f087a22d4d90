"""Basic modules that every other package may import. They import nothing else of ianvs.

`types` (the vocabulary of results), `errors`, `digests` (checksums of stored files), `seeding` (random streams by
purpose), `garbage`, `package` and `shipped` (our own files), `secrets`, `visible_text`.
"""
