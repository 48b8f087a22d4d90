"""What must be known of authors' files before a run: each is imported once, by a process of its own."""

from ianvs.running.inspector.facts import ParadigmFacts, PluginFacts, ReferenceFacts
from ianvs.running.inspector.inspector import Inspector

__all__ = ["Inspector", "ParadigmFacts", "PluginFacts", "ReferenceFacts"]
