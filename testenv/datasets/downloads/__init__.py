"""Datasets as they are downloaded -> index files that a testenv names. Knows nothing of exams."""
