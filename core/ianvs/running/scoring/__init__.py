"""Stored predictions -> scores; nothing is trained or predicted again."""
