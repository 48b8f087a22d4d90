"""The number format in which a network computes; weights and results are float32."""

import torch

from ianvs.base.errors import PluginError, require_known

PRECISIONS = ("fp32", "tf32", "bf16")


def chosen_precision(precision: str, amp: bool) -> str:
    """Combine `precision` and `amp`, the older name for bf16. Raises PluginError if they disagree."""
    require_known("precision", precision, PRECISIONS)
    if amp and precision == "tf32":
        raise PluginError(
            "`amp: true` is `precision: bf16`, and precision is 'tf32'. Take out `amp`.", code="conflicting-keys"
        )
    return "bf16" if amp else precision


def use_precision(precision: str, device: torch.device | str) -> None:
    """Set how this process multiplies float32 on a GPU: "tf32" rounds factors to 10 bits of mantissa, others do not.

    By default torch rounds in convolutions but not in matrix products. Raises PluginError for tf32 on a processor.
    """
    if torch.device(device).type != "cuda":
        if precision == "tf32":
            raise PluginError(
                "precision 'tf32' is for NVIDIA GPUs, and this case runs on the CPU. Use 'fp32', or 'bf16', "
                "which is computed anywhere.",
                code="refused-arguments",
            )
        return
    rounds = precision == "tf32"
    torch.set_float32_matmul_precision("high" if rounds else "highest")
    torch.backends.cudnn.allow_tf32 = rounds
