"""How the process of a learner is kept apart from the exam: messages, arrays by file descriptor, closed folders."""
