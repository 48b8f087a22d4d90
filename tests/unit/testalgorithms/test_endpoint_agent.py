"""An agent that asks an endpoint: what it sends, what it counts, and what it says of a server that fails."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from ianvs.testalgorithms.memory.endpoint_agent import EndpointAgent
from tests.errors import errors_of
from tests.unit.testalgorithms.questions import texts, told, view


class Endpoint(BaseHTTPRequestHandler):
    """Says how many turns it was sent, and what they cost: ten tokens a turn, and one."""

    sent: list
    broken = False

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).sent.append((self.path, self.headers.get("Authorization"), asked))
        turns = len(asked["messages"])
        usage = {"prompt_tokens": 10 * turns, "completion_tokens": 1}
        said = {"choices": [{"message": {"content": f" {turns}. "}}], "usage": usage}
        body = json.dumps({"error": "no such model"} if self.broken else said).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def endpoint():
    Endpoint.sent, Endpoint.broken = [], False
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_notes_are_earlier_turns_and_usage_is_what_it_costs(endpoint, monkeypatch):
    monkeypatch.setenv("KEY_OF_TEST", "k")
    agent = EndpointAgent(url=endpoint, model="m", key_variable="KEY_OF_TEST", max_new_tokens=5)
    agent.check_exam(kind="text", feedback="label")
    assert agent.answer(view("Who leads Alt?")) == ["2"]
    agent.feedback(told(["Who leads Alt?", "Where is Alt?"], ["", ""], texts("Ada", "North")))
    assert agent.answer(view("Who leads Alt?")) == ["6"]
    path, key, asked = Endpoint.sent[-1]
    assert (path, key) == ("/v1/chat/completions", "Bearer k")
    assert asked["model"] == "m" and asked["max_tokens"] == 5 and asked["temperature"] == 0
    assert [one["content"] for one in asked["messages"][1:]] == [
        "Who leads Alt?", "Ada", "Where is Alt?", "North", "Who leads Alt?",
    ]  # fmt: skip
    assert agent.measured() == {"tokens": 21.0 + 61.0, "calls": 2.0} and agent.measured() == {"tokens": 0, "calls": 0}


def test_a_server_that_fails_is_told(endpoint):
    Endpoint.broken = True
    agent = EndpointAgent(url=endpoint, model="m")
    with pytest.raises(Exception, match="no such model"):
        agent.answer(view("Who?"))
    with pytest.raises(Exception, match="can't be asked"):
        EndpointAgent(url="http://127.0.0.1:9/v1", model="m", seconds=2).answer(view("Who?"))


def test_what_it_lacks_is_told_before_anything_runs(monkeypatch):
    monkeypatch.delenv("KEY_OF_TEST", raising=False)
    assert errors_of(EndpointAgent, url="localhost", model="m") == [("refused-arguments", "")]
    agent = EndpointAgent(url="http://h/v1", model="m", key_variable="KEY_OF_TEST")
    assert errors_of(agent.check_exam, kind="text", feedback="label") == [("refused-arguments", "")]
    assert errors_of(agent.check_exam, kind="classification", feedback="label") == [("refused-arguments", "")]
