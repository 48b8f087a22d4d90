"""Which samples belong to which domain."""

from __future__ import annotations

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.sources import read_part
from tests.errors import errors_of, recorded
from tests.unit.exam.data.pictures import write_index, write_picture


def picked(spec):
    listing = read_part(spec, "train")
    return list(zip(listing.ids.tolist(), listing.domains.tolist(), strict=True))


def index_of(folder, names):
    for name in names:
        write_picture(folder / name)
    return write_index(folder, [f"{name} cat" for name in names])


def test_a_domain_is_a_folder_of_the_path_and_others_are_left_out(tmp_path):
    source = index_of(tmp_path, ["rgb/SYN/a.png", "rgb/CS/b.png", "rgb/other/c.png"])
    assert picked(DatasetSpec(train=(source,), using=("CS", "SYN"))) == [
        ("rgb/SYN/a.png", "SYN"),
        ("rgb/CS/b.png", "CS"),
    ]


def test_part_of_a_folders_name_is_no_domain(tmp_path):
    source = index_of(tmp_path, ["CS/a.png", "CS2/b.png", "c/CS.png"])
    assert picked(DatasetSpec(train=(source,), using=("CS",))) == [("CS/a.png", "CS")]


def test_folders_above_the_index_file_don_t_count(tmp_path):
    source = index_of(tmp_path / "CS", ["SYN/a.png"])
    assert picked(DatasetSpec(train=(source,), using=("SYN",))) == [("SYN/a.png", "SYN")]


def test_a_source_may_be_a_domain(tmp_path):
    one, other = index_of(tmp_path / "one", ["a.png"]), index_of(tmp_path / "other", ["a.png"])
    spec = DatasetSpec(
        train=(SourceSpec(one.path, "index", "CS"), SourceSpec(other.path, "index", "SYN")), using=("SYN", "CS")
    )
    assert picked(spec) == [("a.png", "CS"), ("a.png#2", "SYN")]


def test_a_column_may_name_the_domain(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("f,label,domain\n1,a,p\n2,b,q\n3,b,r\n")
    listing = read_part(DatasetSpec(train=(SourceSpec(path, "data"),), using=("r", "p")), "train")
    assert listing.x.tolist() == [[1.0], [3.0]]


def test_a_folder_may_hold_domains_of_class_folders(tmp_path):
    for name in ("CS/cat/a.png", "SYN/dog/b.png"):
        write_picture(tmp_path / "set" / name)
    spec = DatasetSpec(train=(SourceSpec(tmp_path / "set", "data"),), using=("CS", "SYN"))
    assert picked(spec) == [("CS/cat/a.png", "CS"), ("SYN/dog/b.png", "SYN")]
    assert read_part(spec, "train").y.tolist() == ["cat", "dog"]


def test_a_name_without_samples_is_refused_with_what_was_seen(tmp_path):
    source = index_of(tmp_path, ["Day/a.png", "dusk/b.png"])
    assert errors_of(picked, DatasetSpec(train=(source,), using=("day", "dusk"))) == [("unknown-domain", "index.txt")]


def test_a_sample_of_two_domains_is_refused_with_its_line(tmp_path):
    source = index_of(tmp_path, ["CS/a.png", "CS/SYN/b.png"])
    assert errors_of(picked, DatasetSpec(train=(source,), using=("CS", "SYN"))) == [("ambiguous-data", "index.txt:2:1")]


def test_a_sample_without_domain_among_others_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("f,label,domain\n1,a,p\n2,b,\n")
    assert errors_of(picked, DatasetSpec(train=(SourceSpec(path, "data"),))) == [("invalid-record", "t.csv:3:1")]


GARDEN = ["rgb/train/20220420_garden/00480.png", "rgb/train/20220420_garden/00481.png"]


def test_where_no_path_holds_a_domain_using_is_only_a_label(tmp_path):
    source = index_of(tmp_path, GARDEN)
    spec = DatasetSpec(train=(source,), test=(source,), using=("CS", "SYN", "CR"))
    assert picked(spec) == [(name, "") for name in GARDEN]
    (warning,) = data.check_dataset(spec).problems
    assert recorded([warning]) == [("doubtful-data", "")]
    dataset = data.load(spec, tmp_path / "cache")
    assert (dataset.name, dataset.train.domains) == ("CS SYN CR", None)
    assert dataset.notes == (warning.message,)


def test_a_slip_of_the_pen_is_no_label(tmp_path):
    source = index_of(tmp_path, ["rgb/Day/a.png", "rgb/Dusk/b.png"])
    assert errors_of(picked, DatasetSpec(train=(source,), using=("day", "dusk"))) == [
        ("unknown-domain", "index.txt"),
        ("unknown-domain", "index.txt"),
    ]


def test_domains_in_one_part_only_are_refused(tmp_path):
    known, unknown = index_of(tmp_path / "a", ["CS/a.png", "SYN/b.png"]), index_of(tmp_path / "b", GARDEN)
    spec = DatasetSpec(train=(known,), test=(unknown,), using=("CS", "SYN"))
    assert recorded(data.check_dataset(spec).problems) == [("mismatched-data", "b/index.txt")]


def test_data_in_files_are_called_by_what_using_says(tmp_path):
    source = index_of(tmp_path, ["CS/a.png", "SYN/b.png"])
    spec = DatasetSpec(train=(source,), test=(source,), using=("SYN", "CS"))
    assert data.load(spec, tmp_path / "cache").name == "SYN CS"
