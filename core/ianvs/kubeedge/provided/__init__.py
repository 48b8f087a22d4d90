"""Modules that plugins of KubeEdge Ianvs import from `sedna` and `core.common`; `ianvs.kubeedge.provide` names them."""
