"""Detection: boxes of truths and answers, their scores, and the layouts that they are read from."""
