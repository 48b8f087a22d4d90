"""The page: a job's leaderboard, pictures, scenes, replies and facts in one file that needs no server."""

from ianvs.results.page.write_page import page_text, write_page

__all__ = ["page_text", "write_page"]
