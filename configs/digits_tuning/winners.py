"""The winner of each algorithm in the tuning job: the highest mean of accuracy over its exams.

A trial that failed in one of them can't win; of equal ones the first in the grid does.

    python configs/digits_tuning/winners.py reports/digits_tuning/all_rank.csv
"""

import sys

import pandas as pd


def trials(path):
    """Return the mean accuracy over all exams for each algorithm and choice of hyperparameters."""
    table = pd.read_csv(path)
    columns = list(table.columns)
    hyperparameters = columns[columns.index("Basemodel") + 1 : columns.index("Seeds")]
    order = table.sort_values(["Algorithm", *hyperparameters], kind="stable")
    scores = order.groupby(["Algorithm", *hyperparameters], dropna=False, sort=False)["accuracy"].agg(["mean", "count"])
    return scores[scores["count"] == table["Testenv"].nunique()]["mean"]


def winners(path):
    """Return {hyperparameter: value} of the best trial by algorithm, with the names of the YAML file."""
    mean_scores = trials(path)
    names = ["epochs" if name == "Epoch" else name.lower() for name in mean_scores.index.names[1:]]
    best = {}
    for algorithm in dict.fromkeys(key[0] for key in mean_scores.index):
        algorithm_scores = mean_scores[[key[0] == algorithm for key in mean_scores.index]]
        _, *values = algorithm_scores.index[int(algorithm_scores.to_numpy().argmax())]
        best[algorithm] = {name: value for name, value in zip(names, values, strict=True) if pd.notna(value)}
    return best


if __name__ == "__main__":
    for algorithm, chosen in winners(sys.argv[1]).items():
        print(f"{algorithm}: {', '.join(f'{name}={value:g}' for name, value in chosen.items())}")
