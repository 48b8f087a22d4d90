"""JSON schemas of the three files, for editors: made from the models that check the files."""

from ianvs.cli.schema.file_schema import KINDS, file_schema

__all__ = ["KINDS", "file_schema"]
