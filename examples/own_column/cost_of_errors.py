"""A metric that reads a column of the dataset, which it names in `needs`."""


def cost_of_errors(y_true, y_pred, cost):
    """Mean cost of the answers, where a right one costs nothing."""
    return (cost * (y_pred != y_true)).mean()


cost_of_errors.needs = ["cost"]
cost_of_errors.higher_is_better = False
