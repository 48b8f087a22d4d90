"""Jobs of KubeEdge Ianvs as people have them: which are meant, and how their files are read as ours."""
