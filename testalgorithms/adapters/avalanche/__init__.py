"""Strategies of Avalanche for the exams that ship."""
