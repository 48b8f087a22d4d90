"""Recognises jobs of KubeEdge Ianvs, and reads their files in our form."""
