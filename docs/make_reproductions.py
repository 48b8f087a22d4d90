"""The page of reproductions: the prose of reproductions.template.md, tables from reports/ and configs/reproductions.

The build of the site calls `page()`. To read it without a site: python docs/make_reproductions.py FILE

In the template stand, each as a paragraph of its own,
  {{ table JOB METRIC }}               published numbers beside ours, with verdicts, in percent
  {{ scores JOB METRIC METRIC ... }}   ours alone
  {{ settings }}                       the settings of our yamls beside what their sources say, of sources.yaml
  {{ sources }}                        what the numbers in brackets mean; last
Below each table stands what was run, where and when.
"""

import csv
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ianvs.config.load import load_job
from ianvs.config.spec import PublishedSpec
from ianvs.results.report.columns import agreement_words, published_summary
from ianvs.results.report.values import shown_number, signed_number
from ianvs.results.stats import Summary, compare

HERE = Path(__file__).parent
REPORTS, CONFIGS = HERE.parent / "reports", HERE.parent / "configs" / "reproductions"
BY = "the ianvs authors"
PACKAGES = ("torch", "torchvision", "numpy")  # what a learner's arithmetic runs on
NONE = "–"


def page() -> str:
    """The whole document."""
    return _Page().filled((HERE / "reproductions.template.md").read_text(encoding="utf-8"))


class _Page:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # of sources, in the order in which they are named

    def filled(self, template: str) -> str:
        known: Mapping[str, Callable[..., str]] = {
            "table": self.table,
            "scores": self.scores,
            "settings": settings_table,
            "sources": self.sources,
        }

        def made(found: re.Match[str]) -> str:
            word, *given = found[1].split()
            return known[word](*given)

        return re.sub(r"^\{\{ (.*?) \}\}$", made, template, flags=re.MULTILINE)

    def table(self, job: str, metric: str) -> str:
        lines = []
        entries = {name: specs[metric] for name, specs in _published(job).items() if metric in specs}
        rows = _rows(job)
        if unknown := entries.keys() - {row["Algorithm"] for row in rows}:
            raise SystemExit(f"reports/{job} has no row for {', '.join(sorted(unknown))}. Run the job again.")
        for row in rows:
            ours, spec = _summary(row, metric), entries.get(row["Algorithm"])
            if spec is None:
                lines.append([row["Algorithm"], NONE, _shown(ours), NONE, NONE])
                continue
            theirs = published_summary(spec)
            assert theirs is not None  # as there is a spec
            found = compare(ours, theirs, spec.in_our_unit()[2])
            number = self.numbers.setdefault(spec.source, len(self.numbers) + 1)
            low, high = found.low, found.high
            told = "" if low is None or high is None else f" ({_percent(low)} to {_percent(high)})"
            lines.append(
                [
                    row["Algorithm"],
                    f"{_shown(theirs, _as_written)} [{number}]",
                    _shown(ours),
                    signed_number(100 * found.difference, 1) + told,
                    "; ".join(filter(None, agreement_words(found))),
                ]
            )
        return _table(["row", "published", "ours", "difference", "verdict"], lines, [job])

    def scores(self, job: str, *metrics: str) -> str:
        lines = [[row["Algorithm"], *(_shown(_summary(row, metric)) for metric in metrics)] for row in _rows(job)]
        return _table(["row", *metrics], lines, [job])

    def sources(self) -> str:
        return "\n".join(f"{number}. {source}" for source, number in self.numbers.items())


@dataclass(frozen=True)
class SourceRow:
    """One yaml beside its source.

    Attributes:
        file: Path of the yaml, from the root of the checkout.
        source: Repository, commit and file, or the paper.
        settings: What the source says, by the keys of our yamls.
        differs: By key or subject, how the yaml differs and whether that matters.
        ours: The yaml's own values, with those of the files that it names.
    """

    file: str
    source: str
    settings: Mapping[str, Any]
    differs: Mapping[str, str]
    ours: Mapping[str, Any]

    @property
    def unequal(self) -> list[str]:
        """Keys that the yaml gives another value than the source."""
        return [key for key, value in self.settings.items() if key in self.ours and self.ours[key] != value]


def source_rows() -> list[SourceRow]:
    """All rows of configs/reproductions/sources.yaml."""
    rows = yaml.safe_load((CONFIGS / "sources.yaml").read_text(encoding="utf-8"))
    return [
        SourceRow(row["file"], row["source"], row["settings"], row.get("differs", {}), _hyperparameters(row["file"]))
        for row in rows
    ]


def _hyperparameters(name: str) -> dict[str, Any]:
    file = HERE.parent / name
    [module] = yaml.safe_load(file.read_text(encoding="utf-8"))["algorithm"]["modules"]
    pairs = {key: grid["values"] for entry in module["hyperparameters"] for key, grid in entry.items()}
    constants: dict[str, Any] = {}
    for other in pairs.pop("other_hyperparameters", ()):
        constants |= yaml.safe_load((file.parent / other).read_text(encoding="utf-8"))
    return constants | {key: values[0] for key, values in pairs.items()}


def settings_table() -> str:
    """A row for each yaml: its source, its settings, and each difference with whether it matters."""
    lines = []
    for row in source_rows():
        given = {key: row.ours.get(key, value) for key, value in row.settings.items()}
        told = [f"{key}: {text}" for key, text in row.differs.items()]
        shown = ", ".join(f"{key} {_value(value)}" for key, value in given.items())
        link = f"[{row.file.removeprefix('configs/reproductions/')}](../{row.file})"
        lines.append([link, row.source, shown, "<br>".join(told) or NONE, "settings equal to the source, not run"])
    return _lines(["yaml", "source", "settings", "what differs", "state"], lines)


def _value(value: Any) -> str:
    return str(value).replace("'", "").replace("|", "/")


def _published(job: str) -> Mapping[str, Mapping[str, PublishedSpec]]:
    """By algorithm and metric, as the file of the job has it."""
    [file] = [file for file in CONFIGS.glob("*/*.yaml") if f"\n  name: {job}\n" in file.read_text(encoding="utf-8")]
    return load_job(file, root=HERE).published  # a root that is there stands for the data, which nothing here needs


def _rows(job: str) -> list[dict[str, str]]:
    with (REPORTS / job / "all_rank.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _summary(row: dict[str, str], metric: str) -> Summary:
    """A cell that is blank is None, as in the leaderboard."""
    mean, std = (float(row[key]) if row[key] else None for key in (metric, f"{metric}_std"))
    return Summary(mean, std, int(row["Seeds"]))


def _percent(value: float) -> str:
    return shown_number(100 * value, 1)


def _as_written(value: float) -> str:
    return f"{100 * value:.6g}"


def _shown(one: Summary, number: Callable[[float], str] = _percent) -> str:
    """ "91.0 ± 0.7 (5)": percent, and how many runs where that is known."""
    if one.mean is None:
        return NONE
    spread = "" if one.std is None else f" ± {number(one.std)}"
    return number(one.mean) + spread + (f" ({one.n})" if one.n else "")


def _table(headings: list[str], lines: list[list[str]], jobs: list[str]) -> str:
    return "\n".join([_lines(headings, lines), "", *dict.fromkeys(map(_run, jobs))])


def _lines(headings: list[str], lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *lines))


def _run(job: str) -> str:
    """What was run, by whom, when and where, as the report tells it."""
    report = (REPORTS / job / "leaderboard.md").read_text(encoding="utf-8")
    command = re.search(r"^Made by:\n\n```\n(.+?)\n```$", report, re.MULTILINE | re.DOTALL)
    facts = dict(re.findall(r"^- (\w+): (.+)$", report.rpartition("\n## Provenance\n")[2], re.MULTILINE))
    day = max(row["Time"] for row in _rows(job))[:10]
    packages = [one for one in facts["Packages"].split(", ") if one.split(" ")[0] in PACKAGES]
    where = [facts[name] for name in ("CPU", "GPU", "Memory", "Platform") if name in facts]
    versions = [f"Python {facts['Python']}", *packages]
    return (
        f"- Run by {BY}, {day}, at commit {facts['Commit']}: `{command[1] if command else job}`. "
        f"{', '.join(where)}; {', '.join(versions)}."
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
