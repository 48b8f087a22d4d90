"""Class lists and mappings against the tables that the datasets publish, typed in once more."""

from __future__ import annotations

import pytest

from ianvs.testenv.datasets.downloads import bdd100k, camvid, cityscapes, cloud_robotics, idd, synthia
from ianvs.testenv.datasets.streets import STREETS_CLASSES

# trainId(labelId) name, as in cityscapesScripts' labels.py
CITYSCAPES = """0(7) road; 1(8) sidewalk; 2(11) building; 3(12) wall; 4(13) fence; 5(17) pole; 6(19) traffic light;
7(20) traffic sign; 8(21) vegetation; 9(22) terrain; 10(23) sky; 11(24) person; 12(25) rider; 13(26) car; 14(27) truck;
15(28) bus; 16(31) train; 17(32) motorcycle; 18(33) bicycle"""
SYNTHIA_TO_CITYSCAPES = (
    "3>0 4>1 2>2 21>3 5>4 7>5 15>6 9>7 6>8 16>9 1>10 10>11 17>12 8>13 18>14 19>15 20>16 12>17 11>18 "
    "0>255 13>255 14>255 22>255"
)
# IDD level 3 -> Cityscapes' trainIds below 19, its own novel classes from 19 on (MDIL-SS's union of the two)
IDD_TO_UNION = (
    "0>0 1>19 2>1 3>20 4>11 5>12 6>17 7>18 8>21 9>13 10>14 11>15 12>22 13>23 14>3 15>4 16>24 17>25 18>7 19>6 20>5 "
    "21>26 22>2 23>27 24>8 25>10 255>255"
)
ALL = {
    "cityscapes": cityscapes.LABELS,
    "synthia": synthia.LABELS,
    "cloud_robotics": cloud_robotics.LABELS,
    "idd": idd.LABELS,
    "camvid": camvid.LABELS,
}


def arrows(text: str) -> dict[int, int]:
    return {int(left): int(right) for left, right in (pair.split(">") for pair in text.split())}


def test_cityscapes_ids_are_those_of_its_scripts():
    entries = [entry.strip() for entry in CITYSCAPES.split(";")]
    for train_id, entry in enumerate(entries):
        numbers, name = entry.split(") ")
        assert numbers.split("(")[0] == str(train_id)
        assert cityscapes.LABELS.classes[train_id] == name
        assert cityscapes.LABEL_IDS[int(numbers.split("(")[1])] == train_id
    assert sum(target == 255 for target in cityscapes.LABEL_IDS.values()) == 34 - 19 + 1


def test_synthia_maps_to_cityscapes_as_the_field_does():
    assert dict(synthia.TO_CITYSCAPES) == arrows(SYNTHIA_TO_CITYSCAPES)


def test_idd_maps_to_cityscapes_as_the_field_does_and_ignores_its_novel_classes():
    union = arrows(IDD_TO_UNION)
    assert dict(idd.TO_CITYSCAPES) == {old: new if new < 19 else 255 for old, new in union.items()}


@pytest.mark.parametrize(
    ("labels", "classes"), [("cityscapes", 19), ("synthia", 22), ("cloud_robotics", 30), ("idd", 26)]
)
def test_every_class_is_in_one_group_and_has_a_colour_of_its_own(labels: str, classes: int):
    label_set = ALL[labels]
    assert len(label_set.classes) == classes
    assert sorted(name for group in label_set.groups.values() for name in group) == sorted(label_set.classes)
    assert len(set(label_set.palette.values())) == classes


def test_cloud_robotics_has_30_classes_in_7_groups_of_the_published_sizes():
    sizes = {group: len(names) for group, names in cloud_robotics.LABELS.groups.items()}
    assert sizes == {"flat": 4, "human": 2, "vehicle": 6, "construction": 7, "object": 8, "nature": 2, "sky": 1}
    assert cloud_robotics.LABELS.classes[:19] == cityscapes.LABELS.classes
    assert cloud_robotics.LABELS.classes[19:22] == ("stair", "curb", "ramp")


def test_shared_classes_have_one_name_so_that_the_novel_ones_of_the_sequence_can_be_counted():
    seen: set[str] = set()
    novel = []
    for labels in (cityscapes.LABELS, synthia.LABELS, cloud_robotics.LABELS):
        novel.append(len(set(labels.classes) - seen))
        seen |= set(labels.classes)
    assert novel == [19, 3, 11]
    assert set(synthia.LABELS.classes) - set(cityscapes.LABELS.classes) == {"parking-slot", "road-work", "lane-marking"}
    assert len(set(idd.LABELS.classes) - set(cityscapes.LABELS.classes)) == 9
    assert bdd100k.LABELS.classes == cityscapes.LABELS.classes


def test_domains_of_streets_share_classes_and_each_later_one_brings_new_ones():
    source, synthetic, robot = (set(STREETS_CLASSES[name]) for name in ("CS", "SYN", "CR"))
    assert source & synthetic & robot == {"road", "sidewalk", "building", "vegetation", "sky"}
    assert synthetic - source == {"lane-marking", "parking-slot"}
    assert robot - source - synthetic == {"stair", "curb", "door", "dustbin"}
