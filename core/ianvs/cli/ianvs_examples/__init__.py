"""`ianvs examples`: every job of a checkout of KubeEdge Ianvs, tried in a copy, and one table of how they went."""
