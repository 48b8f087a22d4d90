"""A drafter and a verifier as KubeEdge Ianvs calls them since May 2026: n-gram models over letters."""

from collections import Counter

from sedna.common.class_factory import ClassFactory, ClassType

TEXT = (
    "the cloud answers what the edge drafts and the edge drafts what the cloud would answer so the cloud writes the "
    "text and the edge writes most of the letters of the text. "
)
LENGTH = 40


class NGrams:
    """Writes the letter that followed the last `order` letters most often; of several the first in the alphabet."""

    def __init__(self, order):
        self.order = order
        self.counts = {}
        for i in range(len(TEXT)):
            for length in range(order + 1):
                self.counts.setdefault((TEXT + TEXT)[i : i + length], Counter())[(TEXT + TEXT)[i + length]] += 1

    def next(self, text):
        for length in range(self.order, -1, -1):
            counts = self.counts.get(text[len(text) - length :] if length else "")
            if counts:
                return min(counts, key=lambda letter: (-counts[letter], letter))
        return " "

    def write(self, text, letters):
        start = len(text)
        for _ in range(letters):
            text += self.next(text)
        return text[start:]


@ClassFactory.register(ClassType.GENERAL, alias="Bigrams")
class Bigrams:
    def __init__(self, inference_mode="collaboration", draft_tokens_per_step=4, **kwargs):
        self.inference_mode, self.ahead = inference_mode, int(draft_tokens_per_step)

    def load(self):
        self.model = NGrams(2)

    def inference(self, data=None, **kwargs):
        return {"completion": self.model.write(data, LENGTH), "drafted": 0, "accepted": 0}

    def start_session(self, data=None, **kwargs):
        return {"text": data, "request": data}

    def step(self, session, feedback=None, **kwargs):
        session["text"] += feedback or ""
        return {"draft": self.model.write(session["text"], self.ahead)}

    def close_session(self, session, request=None):
        return None


@ClassFactory.register(ClassType.GENERAL, alias="Fourgrams")
class Fourgrams:
    def __init__(self, **kwargs):
        pass

    def load(self):
        self.model = NGrams(4)

    def inference(self, data=None, **kwargs):
        return {"completion": self.model.write(data, LENGTH), "drafted": 0, "accepted": 0}

    def start_session(self, data=None, draft_session=None, **kwargs):
        return {"prompt": data, "text": "", "drafted": 0, "accepted": 0}

    def verify(self, session, draft_output=None, **kwargs):
        accepted = ""
        for letter in draft_output["draft"]:
            expected = self.model.next(session["prompt"] + session["text"] + accepted)
            accepted += expected
            if expected != letter:
                break
            session["accepted"] += 1
        session["drafted"] += len(draft_output["draft"])
        session["text"] += accepted
        if len(session["text"]) < LENGTH:
            return {"stop": False, "progress": bool(accepted), "feedback": accepted}
        counts = {name: session[name] for name in ("drafted", "accepted")}
        return {"stop": True, "result": {"completion": session["text"][:LENGTH], **counts}}

    def close_session(self, session, request=None):
        return None
