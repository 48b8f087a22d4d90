"""Processes of cases: engines, isolation and sandboxes.

From outside: `engines` (Engine, Task: inline, local, ray), `isolated` (questions that a process of its own answers),
`interpreters` (objects in an interpreter of their own). Knows nothing of cases.
"""
