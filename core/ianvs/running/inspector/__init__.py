"""Finds facts about authors' files before a run; each file is imported once, in a separate process."""

from ianvs.running.inspector.facts import ParadigmFacts, PluginFacts, ReferenceFacts
from ianvs.running.inspector.inspector import Inspector

__all__ = ["Inspector", "ParadigmFacts", "PluginFacts", "ReferenceFacts"]
