"""What to do about a module that an author's file imports and that is not there."""

from pathlib import Path

from ianvs.base.errors import shown_path
from ianvs.base.package import PACKAGE

UNIQUE = "ianvs_plugin_"  # begins the names of authors' modules in this process
WORKER_PACKAGE = "author_"  # begins that of an author's package in another interpreter: see interpreters/worker.py
_OTHER_NAMES = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "avalanche": "avalanche-lib",
    "cv2": "opencv-python",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages for pip whose modules have another name."""
_SAME_NAME = """
    accelerate datasets einops h5py jax lightning matplotlib networkx numba numpy omegaconf pandas peft plotly psutil
    pytorch_lightning requests safetensors scipy seaborn sentence_transformers tensorboard tensorboardX tensorflow timm
    torch torchaudio torchmetrics torchvision tqdm transformers wandb
"""
"""Packages for pip. The name of any other module may be anybody's package."""
_OF_REPOSITORIES = """
    backbone backbones common config configs convs core data dataloader dataset helper helpers layers lib loss losses
    method methods misc model models module modules net nets network networks src tools train trainer trainers util
    utils
"""
"""Usual names of folders and files in authors' repositories."""


def how_to_install(module: str, python: Path | str | None = None) -> str:
    """Return a sentence on a missing module.

    python: the interpreter that lacks it, if it is not this one.
    """
    top, _, rest = module.partition(".")
    own_package = UNIQUE if python is None else WORKER_PACKAGE
    if top.startswith(own_package):  # the author's own package, under its unique name
        return f"An import beginning with '.' needs {rest.replace('.', '/')}.py, which is not in the plugin's package"
    if top == PACKAGE.name:
        return f"{PACKAGE.name} has no module of that name"
    if rest:  # python imports a package before its modules
        return f"The package {module.rpartition('.')[0]} has no such module: check the spelling, and its version"
    if top in _OF_REPOSITORIES.split():
        return f"A folder or file {top} of the method's repository has to lie beside the plugin's file"
    advice = f"a module of your own goes beside the plugin's file, and a `url` names it by its path (./{top}.py)"
    if top not in _OTHER_NAMES and top not in _SAME_NAME.split():
        return f"Install the package that has it, whose name may be another; {advice}"
    command = f"{'python' if python is None else shown_path(python)} -m pip install {_OTHER_NAMES.get(top, top)}"
    return f"Install the package that has it (`{command}`); {advice}"


def how_to_name(url: str) -> str:
    """Return a sentence on a module of a `url` that is not there: authors write their own files so."""
    return f"For a file of your own write its path (./{url.replace('.', '/')}.py); a package has to be installed"
