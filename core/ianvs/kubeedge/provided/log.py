"""The two loggers that plugins import."""

from __future__ import annotations

import logging

__all__ = ["CORE_LOGGER", "SEDNA_LOGGER"]


def _logger(name: str) -> logging.Logger:
    logger = logging.getLogger(name)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(
            logging.Formatter("[%(asctime)-15s] %(filename)s(%(lineno)d) [%(levelname)s] - %(message)s")
        )
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return logger


SEDNA_LOGGER = _logger("sedna")
CORE_LOGGER = _logger("ianvs")
