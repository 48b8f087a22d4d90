"""`--to parquet`: the tables of ianvs.results.exports.tidy_tables, a file each; each column carries what it means."""

from __future__ import annotations

from pathlib import Path

from ianvs.results.exports.exporting import needs
from ianvs.results.exports.tidy_tables import meanings, tables
from ianvs.results.stored import Results


def write(results: Results, folder: Path) -> None:
    write_tables(results, folder, to="parquet")


def write_tables(results: Results, folder: Path, to: str) -> dict[str, dict[str, str]]:
    """Write `folder`/<table>.parquet; returns {table: {column: its meaning}}. to: whose extra brings pyarrow."""
    with needs("pyarrow", to):
        import pyarrow
        import pyarrow.parquet
    told = {}
    for name, frame in tables(results).items():
        columns = told[name] = meanings(results, name, list(frame.columns))
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
        fields = [field.with_metadata({"description": columns[field.name]}) for field in table.schema]
        schema = pyarrow.schema(fields, metadata=table.schema.metadata)
        pyarrow.parquet.write_table(table.cast(schema), folder / f"{name}.parquet")
    return told
