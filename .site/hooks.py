"""Pages of the site that are not in the repository as they are.

Links out of docs/ lead to the repository on GitHub; one that leads nowhere stops the build. The pages of
docs/make_reference.py and docs/make_reproductions.py are generated. The first page has the whole width.
"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

REPOSITORY = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<=\]\()(?P<path>\.\.?/[^)#\s]*)(?P<anchor>#[^)\s]*)?(?=\))")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the generated pages (called by MkDocs)."""
    docs = Path(config.docs_dir)
    pages = runpy.run_path(str(docs / "make_reference.py"))["pages"]()
    pages["reproductions.md"] = runpy.run_path(str(docs / "make_reproductions.py"))["page"]()
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """What MkDocs calls for each page: its text with such links replaced."""
    docs = Path(config.docs_dir)
    folder = (docs / page.file.src_uri).parent
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc", "edit"]

    def replaced(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / found["path"]))
        if target.is_relative_to(docs):
            return found[0]
        if not target.exists() or not target.is_relative_to(REPOSITORY):
            raise SystemExit(f"{page.file.src_path}: {found['path']} is not there")
        kind = "tree" if target.is_dir() else "blob"
        return f"{config.repo_url}/{kind}/main/{target.relative_to(REPOSITORY).as_posix()}{found['anchor'] or ''}"

    return _LINK.sub(replaced, markdown)
