"""What a library says, quoted in a message of ours."""

from pickle import UnpicklingError

import pytest

from ianvs.base.errors import first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            UnpicklingError("Weights only load failed. Re-running with `weights_only` set to `False` ..."),
            "it holds other objects than tensors, or no tensors at all",
        ),
        (UnpicklingError("\x1b[1mOnly weights\x1b[0m are loaded.\n\t(1) Re-run"), "Only weights are loaded."),
        (OSError("cannot identify image file <_io.BytesIO object at 0x7f4d2f8a7f10>"), "cannot identify image file"),
        (EOFError(), "EOFError"),
        (FileNotFoundError(2, "No such file", "a.png"), "[Errno 2] No such file: 'a.png'"),
    ],
)
def test_the_first_line_has_no_colours_and_no_addresses(error: Exception, line: str) -> None:
    assert first_line(error) == line
