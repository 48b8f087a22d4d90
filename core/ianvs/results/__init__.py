"""Results of a job: leaderboard, reports (terminal, csv, markdown, LaTeX, page, images), and comparison of several
jobs.

From outside: `stored` (Results, load_results), `report` (build_leaderboard, write_reports), `page` (write_page),
`comparing`, `exports`, `stats` (summarise, standings). Nothing here runs anything.
"""
