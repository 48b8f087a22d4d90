"""What plugins of KubeEdge Ianvs import from `sedna` and `core.common`; `ianvs.kubeedge.provide` gives it its names."""
