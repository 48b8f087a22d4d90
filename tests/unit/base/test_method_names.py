"""Every built-in method can be named in a yaml without a url, in the spellings of the papers."""

import pytest

from ianvs.base.method_names import ALIASES, built_in, carried, qualified
from ianvs.cli.catalogue.describe_entry import describe_name
from ianvs.cli.catalogue.name_registry import listed
from ianvs.config.models.algorithm import ModuleSpec
from ianvs.plugins.loader import load
from tests.errors import errors_of

LANGUAGE = "ianvs.testalgorithms.language"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("iCaRL", ("ICaRL", None)),
        ("ER", ("Replay", None)),
        ("DER++", ("DERpp", None)),
        ("SD-LoRA", ("SDLoRA", None)),
        ("fine-tuning", ("Finetune", None)),
        ("CODA-Prompt", ("CODAPrompt", None)),
        ("O-LoRA", ("OLoRA", f"{LANGUAGE}.olora.basemodel")),
        ("elastic weight consolidation", ("EWC", None)),
        ("Synaptic-Intelligence", ("SI", None)),
        ("Learning Without Forgetting", ("LwF", None)),
        ("upper-bound", ("Joint", None)),
        ("language.EWC", ("EWC", f"{LANGUAGE}.ewc.basemodel")),
        ("EWC", ("EWC", None)),
        ("MultiTask", None),
        ("nothing", None),
    ],
)
def test_a_name_of_a_paper_is_found(name, meant):
    assert built_in(name) == meant


def test_every_listed_algorithm_works_in_a_yaml_by_the_name_that_show_gives():
    for entry in listed("algorithms"):
        name = (qualified(entry.value) if entry.url else "") or entry.name
        module = ModuleSpec("basemodel", name)
        found = load(module.url, module.name).target
        assert f"{found.__module__}:{found.__qualname__}" == entry.value, entry.name
    assert "name: language.EWC}" in describe_name("language.EWC")
    assert "also called:\n    ER (" in describe_name("ER")


def test_aliases_name_what_exists_and_no_two_things():
    for alias, (target, source) in ALIASES.items():
        assert built_in(alias) == built_in(target) is not None, alias
        assert any(year in source for year in map(str, range(1997, 2027))), alias
    assert len({key for key, _ in carried()}) == len(carried())


def test_an_ambiguous_name_is_refused_with_its_full_names():
    assert errors_of(load, None, "MultiTask") == [("unloadable-plugin", "")]
