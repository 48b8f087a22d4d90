"""The page: a job's leaderboard, charts, images, replies and facts in one file that needs no server."""
