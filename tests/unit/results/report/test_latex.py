"""The leaderboard as a LaTeX table."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ianvs.results.report import latex as writer
from ianvs.results.report.build_document import document_of
from ianvs.results.report.latex import escaped
from ianvs.results.report.leaderboard import Leaderboard
from tests.unit.results.report.report_cases import board, result, suite

EVIL = r"50% of_a & b #1 {x} $y$ \input{z} ~^ <a|b> ±2 λ Δ → naïve -- [q]"


def latex(table: Leaderboard, title: str = "Leaderboard", command: str | None = None) -> str:
    return writer.latex(document_of(table, title, command))


def lines_of(page: str) -> list[str]:
    """The lines between the rules, without comments."""
    body = page.split("\\toprule\n")[1].split("\\bottomrule")[0]
    return [line for line in body.splitlines() if line not in ("\\midrule", "")]


def separators(line: str) -> int:
    return len(re.findall(r"(?<!\\)&", line))


def test_the_best_mean_is_bold_by_the_direction_of_its_metric_and_bounds_are_no_competitors() -> None:
    head, bound, best, second, *others = lines_of(latex(board(suite(), seeds=2)))
    assert head == r"Rank & Tier & Algorithm & Hyperparameters & accuracy $\uparrow$ & lost $\downarrow$ \\"
    assert bound == r"bound &  & joint &  & $0.980 \pm 0.014$ & $0.000 \pm 0.000$ \\"
    assert best == r"1 (1-3) & A & replay & memory=500 & $\mathbf{0.950} \pm 0.014$ & $\mathbf{0.050} \pm 0.014$ \\"
    assert second == r"2 (1-3) & A & replay & memory=200 & $0.910 \pm 0.014$ & $0.110 \pm 0.014$ \\"
    assert not any("mathbf" in line for line in others)


def test_means_that_read_the_same_are_bold_alike() -> None:
    _, *rows = lines_of(latex(board([result("a", 0, 0.50001), result("b", 0, 0.50002), result("c", 0, 0.4)])))
    assert [r"\mathbf{0.500}" in row for row in rows] == [True, True, False]


def test_each_exam_has_a_best_of_its_own() -> None:
    cases = [
        replace(found, case=replace(found.case, id=f"{exam}{found.case.id}", row=f"{exam}{name}", testenv=exam))
        for exam, scores in (("easy_one", (0.9, 0.8)), ("hard", (0.2, 0.3)))
        for name, score in zip("ab", scores, strict=True)
        for found in [result(name, 0, score)]
    ]
    lines = lines_of(latex(board(cases)))
    assert lines[1] == r"\multicolumn{4}{l}{\emph{easy\_one}} \\"
    assert lines[4] == r"\multicolumn{4}{l}{\emph{hard}} \\"
    assert [r"\mathbf{0.900}" in lines[2], r"\mathbf{0.300}" in lines[5]] == [True, True]
    assert sum(r"\mathbf{0." in line.split("&")[2] for line in lines if line.count("&") == 3) == 2


def test_without_a_spread_there_are_no_tiers() -> None:
    head, *_ = lines_of(latex(board([result("a"), result("b")])))
    assert "Tier" not in head


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b", r"a\_b"),
        ("50 % & #1", r"50 \% \& \#1"),
        ("{x} $y$", r"\{x\} \$y\$"),
        (r"\input", r"\textbackslash{}input"),
        ("0.9 ± 0.1", r"0.9 $\pm$ 0.1"),
        ("λ Δ Αμ", r"$\lambda$ $\Delta$ A$\mu$"),
        ("a\n%b", r"a \%b"),
        ("--x", r"-{}-x"),
    ],
)
def test_what_latex_would_read_is_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_whatever_a_name_holds_the_table_stays_a_table() -> None:
    page = latex(board([result(EVIL, hyperparameters={EVIL: rate}) for rate in (1, 2)]), EVIL, f"ianvs\n{EVIL}")
    code = "\n".join(line for line in page.splitlines() if not line.startswith("%"))
    plain = re.sub(r"\\[\\{}%&#$_]", "", code)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert "%" not in plain
    assert "\\input" not in plain
    assert {separators(line) for line in lines_of(page)} == {4}
    assert page.count(r"\begin{") == page.count(r"\end{") == 2


def test_it_says_how_it_was_made_and_what_it_needs() -> None:
    page = latex(board(suite(), seeds=2), "Cheese", "ianvs -f job.yaml")
    assert page.startswith("% Made by: ianvs -f job.yaml\n% Needs \\usepackage{booktabs}\n")
    assert "pdflatex" not in page
    assert "lualatex" in latex(board([result("方法")]))


def test_it_compiles(tmp_path: Path) -> None:
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("there is no pdflatex")
    page = latex(board([*suite(), result(EVIL, 0), result(EVIL, 1)], seeds=2), EVIL)
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n" + page + "\\end{document}\n"
    )
    done = subprocess.run([program, "-halt-on-error", "paper.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
