"""Where a case runs, and how it is kept apart.

From outside: `engines` (Engine, Task: inline, local, ray), `sealing` (Peer, ArrayWriter, confine), `isolated` (a
question that is answered by a process of its own), `check` (of plugins, as a task). Knows nothing of cases.
"""
