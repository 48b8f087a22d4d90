"""The second calling convention, `contract: ianvs`: plugins of KubeEdge Ianvs as they are, handed paths and words."""
