"""The documents as a site: no broken link, and what newcomers look for within two clicks."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlparse

import pytest

pytest.importorskip("material", reason="the site needs mkdocs-material: pip install 'ianvs-bench[docs]'")
REPOSITORY = Path(__file__).parents[3]


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.found.add(dict(attributes).get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", ".site/mkdocs.yml", "-d", folder]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def links_of(site, address):
    if urlparse(address).scheme not in ("", "site"):
        return set()
    path = site / urlparse(address).path.lstrip("/")
    path = path / "index.html" if path.is_dir() else path
    if path.suffix != ".html":
        return set()
    parser = Links()
    parser.feed(path.read_text(encoding="utf-8"))
    # urljoin leaves unknown schemes alone, so the site is given one that it knows.
    joined = {urljoin(f"http://site{urlparse(address).path}", link) for link in parser.found}
    return {link.removeprefix("http://site") for link in joined}


@pytest.mark.parametrize(
    "what",
    [
        "/extending/",
        "/data/",
        "/clusters/",
        "/results/",
        "https://github.com/ianvs/ianvs/blob/main/CITATION.cff",
        "https://github.com/ianvs/ianvs/issues",
        "/getting_started/",
        "/api/",
        "/gallery/digits_class_incremental.html",
    ],
)
def test_what_newcomers_look_for_is_two_clicks_away(site, what):
    near = links_of(site, "/")
    assert what in near.union(*(links_of(site, address) for address in near))


def test_no_page_asks_for_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "fonts.googleapis" not in text
        assert 'src="http' not in text


def test_pages_of_shipped_jobs_are_small_and_name_no_path_of_a_machine(site):
    pages = sorted(
        address
        for address in links_of(site, "/results/")
        if address.startswith("/gallery/") and address.endswith(".html")
    )
    assert len(pages) == 3
    for address in pages:
        text = (site / address.lstrip("/")).read_text(encoding="utf-8")
        assert len(text) < 1_000_000
        assert 'class="board"' in text
        assert 'href="cases/' not in text
        assert not re.search(r"/(tmp|home|root|work|Users)/", text)


def test_files_of_the_repository_are_links_to_it(site):
    assert "https://github.com/ianvs/ianvs/blob/main/testalgorithms/ewc/basemodel.py" in links_of(site, "/catalogue/")
