"""On the site, links out of docs/ lead to the repository on GitHub. One that leads nowhere stops the build.

The first page has the whole width.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<=\]\()(?P<path>\.\.?/[^)#\s]*)(?P<anchor>#[^)\s]*)?(?=\))")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """What MkDocs calls for each page: its text with such links replaced."""
    folder = Path(page.file.abs_src_path).parent
    docs = Path(config.docs_dir)
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
