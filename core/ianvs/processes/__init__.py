"""Processes of cases: engines, isolation and sandboxes.

From outside: `engines` (Engine, Task: inline, local, ray), `isolated` (calls in a separate process), `interpreters`
(objects in another interpreter). This package knows nothing of cases.
"""
