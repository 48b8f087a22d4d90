"""Where tasks run: in this process, in processes of this machine, on a cluster. One contract (engine.py) for all."""
