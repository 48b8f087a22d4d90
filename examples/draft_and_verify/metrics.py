"""How often the text is the verifier's own, and what share of the drafted letters was kept."""

from sedna.common.class_factory import ClassFactory, ClassType


@ClassFactory.register(ClassType.GENERAL, alias="exact")
def exact(y_true, y_pred):
    return sum(truth == result[1]["completion"] for truth, result in zip(y_true, y_pred)) / len(y_pred)


@ClassFactory.register(ClassType.GENERAL, alias="acceptance")
def acceptance(y_true, y_pred):
    drafted = sum(result[1]["drafted"] for result in y_pred)
    return round(sum(result[1]["accepted"] for result in y_pred) / drafted, 4) if drafted else 0.0
