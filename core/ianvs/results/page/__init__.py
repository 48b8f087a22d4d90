"""The page: a job's leaderboard, images, scenes, replies and facts in one file that needs no server."""
