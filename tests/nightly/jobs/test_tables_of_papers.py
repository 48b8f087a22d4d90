"""Tables of papers as yaml: they validate on data in their real layout, and two rounds of each run at a tiny size."""

from pathlib import Path

import pytest
import yaml

from ianvs import api
from tests.jobs import write_job
from tests.nightly.jobs import made_up_layouts as layouts

CONFIGS = Path(__file__).parents[3] / "configs" / "reproductions"
TINY = {"epochs": 1, "batch_size": 16, "dataset.image_size": 16}
VIT = {
    **TINY,
    "network": "vit",
    "weights": None,
    "download": False,
    "preprocess": {"resize": 9, "crop": 8, "scale": "unit"},
}
DENSE = {**TINY, "network": "erfnet_narrow", "first_round": {"learning_rate": 0.01}, "dataset.image_size": 32}

TABLES = {
    "imagenet_r_ease": (
        "vit_imagenet_r",
        lambda root: layouts.class_folders(root, 200),
        "ease",
        {**VIT, "scenario.rounds": 2, "bottleneck": 2},
    ),
    "imagenet_r_mos": (
        "vit_imagenet_r",
        lambda root: layouts.class_folders(root, 200),
        "mos",
        {**VIT, "scenario.rounds": 2, "bottleneck": 2, "alignment_epochs": 1, "alignment_samples": 2},
    ),
    "foster_cifar100": (
        "foster_cifar100",
        lambda root: layouts.class_folders(root, 100, 3),
        "foster",
        {
            "batch_size": 64,
            "epochs": 1,
            "compression_epochs": 1,
            "first_round": {"epochs": 2},
            "widths": [4, 4, 4],
            "blocks": 1,
            "scenario.rounds": 2,
        },
    ),
    "domainnet_inflora": (
        "vit_domainnet",
        layouts.domainnet,
        "inflora",
        {**VIT, "scenario.first": 69, "scenario.rounds": 2, "inflora.rank": 2, "rounds": 2, "dataset.image_size": 12},
    ),
    "domainnet_sd_lora": (
        "vit_domainnet",
        layouts.domainnet,
        "sd_lora",
        {**VIT, "scenario.first": 69, "scenario.rounds": 2, "sd_lora.rank": 2, "dataset.image_size": 12},
    ),
    "voc_15_1_mib": ("voc_15_1", layouts.voc, "mib", {**DENSE, "scenario.rounds": 2}),
    "voc_15_1_plop": ("voc_15_1", layouts.voc, "plop", {**DENSE, "scenario.rounds": 2}),
    "ade_100_10": ("ade_100_10", layouts.ade, "finetune", {**DENSE, "scenario.rounds": 2, "dataset.image_size": 16}),
    "vtab_ease": (
        "vit_vtab",
        lambda root: layouts.class_folders(root, 50),
        "ease",
        {**VIT, "scenario.rounds": 2, "bottleneck": 2},
    ),
    "fscil_cub": (
        "fscil_cub",
        lambda root: layouts.class_folders(root, 200, 6),
        "simplecil",
        {
            "network": "vit",
            "weights": None,
            "download": False,
            "preprocess": VIT["preprocess"],
            "dataset.image_size": 16,
            "scenario.rounds": 2,
        },
    ),
}


def only(job: Path, algorithm: str, folder: Path) -> Path:
    """The same job with one algorithm."""
    content = yaml.safe_load(job.read_text())["benchmarkingjob"]
    listed = content["test_object"]["algorithms"]
    content["test_object"]["algorithms"] = [
        {**entry, "url": str(job.parent / entry["url"])} for entry in listed if entry["name"] == algorithm
    ]
    content |= {"testenv": str(job.parent / content["testenv"]), "workspace": str(folder / "ws"), "seeds": [0]}
    content.pop("published", None)
    testenv = yaml.safe_load(Path(content["testenv"]).read_text())["testenv"]
    if (
        testenv["dataset"].get("name") == "cifar100"
    ):  # torchvision reads nothing but the real files: their sums are known
        testenv["dataset"] = {"root": ".", "image_size": 12}
        content["testenv"] = str(folder / "testenv.yaml")
        Path(content["testenv"]).write_text(yaml.safe_dump({"testenv": testenv}, sort_keys=False))
    (folder / "job.yaml").write_text(yaml.safe_dump({"benchmarkingjob": content}, sort_keys=False))
    return folder / "job.yaml"


@pytest.mark.parametrize("table", TABLES)
def test_a_table_validates_as_it_is_and_two_rounds_of_it_run(table, tmp_path):
    folder, made, algorithm, changes = TABLES[table]
    data = tmp_path / "data"
    data.mkdir()
    made(data)
    job = only(CONFIGS / folder / "benchmarkingjob.yaml", algorithm, tmp_path)
    size = {"dataset.image_size": changes["dataset.image_size"]} if "dataset.image_size" in changes else {}
    free = {key: changes[key] for key in ("weights", "download", "network") if key in changes}
    api.validate(job, root=data, settings={**size, **free})
    exam = next(iter(api.exams(job, root=data, settings=size).values()))
    assert len(exam.rounds) == {"vit_imagenet_r": 10, "voc_15_1": 6, "foster_cifar100": 6, "ade_100_10": 6}.get(
        folder, {"vit_domainnet": 5, "vit_vtab": 5, "fscil_cub": 11}.get(folder)
    )
    found = api.run(job, root=data, settings=changes, engine="inline")
    assert found.exit_code == 0
    [case] = found
    assert len(case.rounds) == 3


def write_trace(folder: Path, tasks: tuple[str, ...]) -> Path:
    """A job with the block of docs/language.md on a tiny model."""
    layouts.trace(folder)
    summaries = [task for task in tasks if task == "MeetingBank"]
    train, test = ({task: f"{task}/{part}.json" for task in tasks} for part in ("train", "test"))
    testenv = {
        "dataset": {"train_data": train, "test_data": test},
        "scenario": {"name": "domain-incremental"},
        "metrics": [
            {"name": "task_score", "by": dict.fromkeys(summaries, "ROUGE_L"), "otherwise": "choice_letter"},
            {"name": "TRACE_OP", "of": "task_score"},
            {"name": "TRACE_BWT", "of": "task_score"},
        ],
    }
    job = write_job(
        folder,
        engine="local",
        name="SeqFT",
        hyperparameters="",
        testenv=yaml.safe_dump(testenv),
        sort_by="[{TRACE_OP: descend}]",
        job="seeds: [0]",
    )
    module = {
        "type": "basemodel",
        "name": "SeqFT",
        "hyperparameters": [{"base_model": {"values": ["tiny-stand-in"]}}, {"epochs": {"values": [1]}}],
    }
    algorithm = {"algorithm": {"paradigm_type": "incrementallearning", "modules": [module]}}
    (folder / "algorithm.yaml").write_text(yaml.safe_dump(algorithm))
    return job


def test_trace_validates_with_its_eight_tasks_and_two_rounds_of_it_run(tmp_path):
    assert len(next(iter(api.exams(write_trace(tmp_path / "all", layouts.TASKS)).values())).rounds) == 8
    api.validate(tmp_path / "all" / "benchmarkingjob.yaml")
    found = api.run(write_trace(tmp_path / "two", layouts.TASKS[1:3]), engine="inline")
    assert found.exit_code == 0


def test_a_stream_of_rounds_with_one_three_two_and_one_classes_in_which_two_return(tmp_path):
    layouts.class_folders(tmp_path / "data", 5, 4)
    rounds = [["n000"], ["n001", "n002", "n003"], ["n004", "n000"], ["n001"]]
    testenv = {
        "dataset": {"root": str(tmp_path / "data"), "image_size": 12},
        "scenario": {"name": "class-incremental", "round_classes": rounds},
        "metrics": ["accuracy", "FM"],
    }
    job = write_job(
        tmp_path, engine="local", name="ER", hyperparameters="", testenv=yaml.safe_dump(testenv), job="seeds: [0]"
    )
    options = {"network": "linear", "epochs": 1, "memory_per_class": 2, "selection": "herding"}
    module = {
        "type": "basemodel",
        "name": "iCaRL",
        "hyperparameters": [{k: {"values": [v]}} for k, v in options.items()],
    }
    (tmp_path / "algorithm.yaml").write_text(
        yaml.safe_dump({"algorithm": {"paradigm_type": "incrementallearning", "modules": [module]}})
    )
    found = api.run(job, engine="inline")
    assert found.exit_code == 0
    [exam] = api.exams(job).values()
    assert [len(r.classes) for r in exam.rounds] == [1, 3, 2, 1]
