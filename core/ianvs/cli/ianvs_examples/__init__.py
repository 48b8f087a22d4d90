"""`ianvs examples`: tries every job of a checkout of KubeEdge Ianvs in a copy, and writes one table of the outcomes."""
