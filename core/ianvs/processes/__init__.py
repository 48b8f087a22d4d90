"""Where a case runs, and how it is kept apart.

From outside: `engines` (Engine, Task: inline, local, ray), `sealing` (Peer, ArrayWriter, confine), `isolated`
(questions that a process of its own answers). Knows nothing of cases.
"""
