"""Names under which built-in methods can be written in an algorithm's yaml without a `url`."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from ianvs.base.entry_points import installed
from ianvs.base.package import PACKAGE

GROUP = "ianvs.algorithms"

ALIASES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ER": ("Replay", "Chaudhry et al. 2019, arXiv 1902.10486"),
        "experience replay": ("Replay", "Chaudhry et al. 2019, arXiv 1902.10486"),
        "fine-tuning": ("Finetune", "Masana et al. 2022, arXiv 2010.15277 (FACIL)"),
        "FT": ("Finetune", "Masana et al. 2022, arXiv 2010.15277 (FACIL)"),
        "naive": ("Finetune", "Lomonaco et al. 2021, arXiv 2104.00405 (Avalanche)"),
        "multi-task": ("Joint", "Caruana 1997"),
        "A-GEM": ("AGEM", "Chaudhry et al. 2019, arXiv 1812.00420"),
        "DER++": ("DERpp", "Buzzega et al. 2020, arXiv 2004.07211"),
        "ER-ACE": ("ERACE", "Caccia et al. 2022, arXiv 2104.05025"),
        "CWR*": ("CWRStar", "Lomonaco et al. 2020, arXiv 1907.03799"),
        "upper bound": ("Joint", "Masana et al. 2022, arXiv 2010.15277 (FACIL), joint training"),
        "elastic weight consolidation": ("EWC", "Kirkpatrick et al. 2017, arXiv 1612.00796"),
        "Synaptic Intelligence": ("SI", "Zenke et al. 2017, arXiv 1703.04200"),
        "learning without forgetting": ("LwF", "Li & Hoiem 2016, arXiv 1606.09282"),
        "memory aware synapses": ("MAS", "Aljundi et al. 2018, arXiv 1711.09601"),
        "gradient episodic memory": ("GEM", "Lopez-Paz & Ranzato 2017, arXiv 1706.08840"),
        "averaged GEM": ("AGEM", "Chaudhry et al. 2019, arXiv 1812.00420"),
        "dark experience replay": ("DER", "Buzzega et al. 2020, arXiv 2004.07211"),
        "dark experience replay++": ("DERpp", "Buzzega et al. 2020, arXiv 2004.07211"),
        "Riemannian walk": ("RWalk", "Chaudhry et al. 2018, arXiv 1801.10112"),
        "maximally interfered retrieval": ("MIR", "Aljundi et al. 2019, arXiv 1908.04742"),
        "incremental classifier and representation learning": ("ICaRL", "Rebuffi et al. 2017, arXiv 1611.07725"),
        "bias correction": ("BiC", "Wu et al. 2019, arXiv 1905.13260"),
        "weight aligning": ("WA", "Zhao et al. 2020, arXiv 1911.07053"),
        "nearest class mean": ("NCM", "Mensink et al. 2013; Janson et al. 2022, arXiv 2210.04428"),
        "learning to prompt": ("L2P", "Wang et al. 2022, arXiv 2112.08654"),
        "UCIR": ("LUCIR", "Hou et al. 2019, as Douillard et al. 2020 call it"),
        "RW": ("RWalk", "Chaudhry et al. 2018, arXiv 1801.10112"),
        "dynamically expandable representation": ("DynamicER", "Yan et al. 2021, arXiv 2103.16788"),
        "Deep SLDA": ("SLDA", "Hayes & Kanan 2020, arXiv 1909.01520"),
        "ADAM": ("APER", "Zhou et al. 2023, arXiv 2303.07338, first version"),
        "CODA-P": ("CODAPrompt", "Smith et al. 2023, arXiv 2211.13218"),
        "MSP": ("MaxSoftmax", "Hendrycks & Gimpel 2017, arXiv 1610.02136"),
        "ILOD": ("DetectionLwF", "Shmelkov et al. 2017, arXiv 1708.06977"),
        "SeqFT": ("Sequential", "Wang et al. 2023, arXiv 2310.06762 (TRACE)"),
    }
)
"""Names in papers, with the name of the method here and the paper that uses it.

Case, hyphens, underscores and blanks make no difference, here and in the built-in names: `iCaRL`, `O-LoRA`, `SD-LoRA`.
"""


def built_in(name: str) -> tuple[str, str | None] | None:
    """Resolve a yaml's `name` without `url`.

    Args:
        name: A built-in name, in any spelling; one of ALIASES; or, of a method in a folder of its kind, that folder
            before it: `language.EWC`, `segmentation.LwF`.

    Returns:
        (name, url) under which it is loaded, `url` None for an entry point; None if it is unknown or not unique.
    """
    points = installed(GROUP)
    if name in points:
        return name, None
    if exact := [value for key, value in carried() if name in (key, key.partition(".")[2])]:
        return _loaded(exact[0]) if len(exact) == 1 else None
    spelling = folded(name)
    wanted = {folded(key): folded(target) for key, (target, _) in ALIASES.items()}.get(spelling, spelling)
    matches: list[tuple[str, str | None]] = [(key, None) for key in points if folded(key) == wanted]
    matches = matches or [_loaded(value) for key, value in carried() if wanted in _spellings(key)]
    return matches[0] if len(matches) == 1 else None


def aliases_of(name: str, url: str | None) -> tuple[str, ...]:
    """Return the names in papers under which `built_in` finds a method."""
    return tuple(alias for alias, (target, _) in ALIASES.items() if target == name and built_in(alias) == (name, url))


def qualified(value: str) -> str:
    """Return the shortest name of `built_in` for the class at `value`, "package.module:Class"; "" if it has none."""
    names = [key for key, other in carried() if other == value]
    short = [name.partition(".")[2] for name in names]
    return next((name for name in (*short, *names) if (loaded := built_in(name)) and _loaded(value) == loaded), "")


@lru_cache(maxsize=1)
def carried() -> tuple[tuple[str, str], ...]:
    """Return (folder.Class, "package.module:Class") of the methods in subfolders, such as language/ewc/basemodel.py."""
    home = PACKAGE / "testalgorithms"
    methods = []
    for file in sorted(home.glob("*/*/basemodel.py")):
        path = file.relative_to(home).with_suffix("")
        module = ".".join((PACKAGE.name, "testalgorithms", *path.parts))
        for name in re.findall(
            r"^class ([A-Za-z]\w*)\([^)]*Learner\b[^)]*\):", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            methods.append((f"{path.parts[0]}.{name}", f"{module}:{name}"))
    return tuple(methods)


def _spellings(key: str) -> tuple[str, str]:
    return folded(key), folded(key.partition(".")[2])


def _loaded(value: str) -> tuple[str, str | None]:
    module, _, name = value.partition(":")
    return name, module


def folded(name: str) -> str:
    """Return `name` without what makes no difference: case, hyphens, underscores and blanks."""
    return re.sub(r"[-_ ]", "", name.casefold())
