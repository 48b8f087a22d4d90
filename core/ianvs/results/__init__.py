"""What is stored of a job -> leaderboard -> terminal, csv, markdown, LaTeX, page, images; several jobs compared.

From outside: `stored` (Results, load_results), `report` (build_leaderboard, write_reports), `page` (write_page),
`comparing`, `exports`, `stats` (summarise, standings). Nothing here runs anything.
"""
