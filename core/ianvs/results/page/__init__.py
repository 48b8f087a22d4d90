"""The page: a job's leaderboard, pictures, scenes, replies and facts in one file that needs no server."""
