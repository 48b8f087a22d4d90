from sedna.common.class_factory import ClassFactory, ClassType


@ClassFactory.register(ClassType.GENERAL, alias="accuracy")
def accuracy(y_true, y_pred, **kwargs):
    return sum(str(a) == str(b) for a, b in zip(y_true, y_pred)) / len(y_true)
