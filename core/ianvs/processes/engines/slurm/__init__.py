"""The engine of clusters that have Slurm."""
