"""Index files for testenvs from downloaded datasets. Does not depend on exams."""
