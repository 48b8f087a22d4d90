"""Output to streams whose encoding lacks some characters: a C locale, an old console."""

import codecs
import sys
from io import TextIOWrapper

_IN_ASCII = str.maketrans(
    {"±": "+-", "…": "...", "–": "-", "—": "-", "−": "-", "→": "->", "≤": "<=", "≥": ">=", "≈": "~", "²": "^2"}
)
_ERRORS = "ianvs.in_ascii"


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_IN_ASCII)
    return text.encode(error.encoding, "replace").decode(error.encoding), error.end


def write_what_can_be_written() -> None:
    """Print "+-" for "±" and "?" for a letter where a stream's encoding has neither, in place of an error."""
    codecs.register_error(_ERRORS, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)
