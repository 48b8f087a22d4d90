"""The winner of each algorithm in the tuning job: the highest mean of accuracy over its exams.

A trial that failed in one of them can't win; of equal ones the first in the grid does.

    python configs/digits_tuning/winners.py reports/digits_tuning/all_rank.csv
"""

import sys

import pandas as pd


def trials(path):
    """One row for each algorithm and choice of hyperparameters: the mean of its accuracy over all exams."""
    table = pd.read_csv(path)
    columns = list(table.columns)
    tried = columns[columns.index("Basemodel") + 1 : columns.index("Seeds")]
    order = table.sort_values(["Algorithm", *tried], kind="stable")
    found = order.groupby(["Algorithm", *tried], dropna=False, sort=False)["accuracy"].agg(["mean", "count"])
    return found[found["count"] == table["Testenv"].nunique()]["mean"]


def winners(path):
    """By algorithm: {hyperparameter: value}, as its yaml has them."""
    found = trials(path)
    names = ["epochs" if name == "Epoch" else name.lower() for name in found.index.names[1:]]
    best = {}
    for algorithm in dict.fromkeys(key[0] for key in found.index):
        of_it = found[[key[0] == algorithm for key in found.index]]
        _, *values = of_it.index[int(of_it.to_numpy().argmax())]
        best[algorithm] = {name: value for name, value in zip(names, values, strict=True) if pd.notna(value)}
    return best


if __name__ == "__main__":
    for algorithm, chosen in winners(sys.argv[1]).items():
        print(f"{algorithm}: {', '.join(f'{name}={value:g}' for name, value in chosen.items())}")
