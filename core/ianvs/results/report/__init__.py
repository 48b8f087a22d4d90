"""Results of cases -> a ranked leaderboard -> terminal, csv, markdown, images, frames."""
