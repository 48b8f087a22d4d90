"""Class names in a testenv: one list, or one for each domain."""

from __future__ import annotations

LINES = ("train_index: train.txt", "test_index: test.txt")


def test_each_domain_may_have_a_class_list_of_its_own(files):
    files.dataset(*LINES, "using: CS CR", "classes: {CS: [road, car], CR: [car, 0]}")
    assert files.load().testenvs[0].dataset.classes == {"CS": ("road", "car"), "CR": ("car", "0")}


def test_a_class_that_is_twice_in_the_list_of_a_domain(files):
    files.dataset(*LINES, "classes: {CS: [road], CR: [car, road, car]}")
    assert files.errors() == [("duplicate-entry", "testenv.yaml:5:43")]


def test_a_domain_in_use_without_a_class_list(files):
    files.dataset(*LINES, "using: CS SYM", "classes: {CS: [road], SYN: [car]}")
    assert files.errors() == [("unknown-domain", "testenv.yaml:5:12")]


def test_a_class_list_that_is_no_list_or_empty(files):
    files.dataset(*LINES, "classes: {CS: road}")
    assert files.errors() == [("wrong-type", "testenv.yaml:5:19")]
    files.dataset(*LINES, "classes: {CS: []}")
    assert files.errors() == [("empty-value", "testenv.yaml:5:19")]
