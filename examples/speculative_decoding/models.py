"""A large model that counts in words, and a small one that is wrong at every fourth number."""

from sedna.common.class_factory import ClassFactory, ClassType

WORDS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def next_word(item, text):
    """What follows `text` in the answer to "count to N"; None at its end."""
    return WORDS[len(text) + 1] if len(text) < int(item.split()[-1]) else None


@ClassFactory.register(ClassType.GENERAL, alias="Draft")
class Draft:
    def draft(self, item, text, ahead):
        words = []
        for _ in range(ahead):
            word = next_word(item, [*text, *words])
            if word is None:
                break
            words.append("many" if word in ("four", "eight", "twelve") else word)
        return words


@ClassFactory.register(ClassType.GENERAL, alias="Target")
class Target:
    def verify(self, item, text, draft):
        """The words of `draft` up to the first wrong one, and the next right one; nothing at the end of the answer."""
        words = []
        while (word := next_word(item, [*text, *words])) is not None:
            words.append(word)
            if len(words) > len(draft) or draft[len(words) - 1] != word:
                break
        return words


@ClassFactory.register(ClassType.HEM, alias="Always")
class Always:
    def __call__(self, item):
        return True


@ClassFactory.register(ClassType.GENERAL, alias="exact")
def exact(y, results):
    return sum(label == result[1] for label, result in zip(y, results)) / len(y)
