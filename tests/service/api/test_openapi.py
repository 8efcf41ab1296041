"""The OpenAPI document and the API say the same: Schemathesis asks what the document allows, and what it forbids.

Three of its checks are told where they do not apply. What is well formed may still be no filter, no cursor and no tag
of anything (`positive_data_acceptance`); `partial=true` takes bodies with bad parts, and says which
(`negative_data_rejection`); and a query without a name or a value is no query any more when it is sent.
"""

import itertools
import json
import logging
import secrets
import time
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
import schemathesis
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.generation import GenerationMode
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.examples import examples
from tests.service.api.asking import Asker

from tidings.service.api.app import ROUTES
from tidings.service.events.bodies import LINES

# Strategies of Schemathesis use the module `random`.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")

STREAM = "/v1/stream"  # it does not end
OPERATIONS = [operation for module in ROUTES for operation in module.OPERATIONS if operation.path != STREAM]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@schemathesis.serializer(*LINES)
def write_lines(_context, value):
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def list_excluded_checks(case):
    is_partial = "partial" in (case.query or {})
    return [positive_data_acceptance, *([negative_data_rejection] if is_partial else [])]


class Inspection:
    """The API, its document for Schemathesis, and a client that stays."""

    def __init__(self, folder):
        self.api = Asker(Path(folder))
        self.document = self.api.app.openapi()
        self.schema = schemathesis.openapi.from_dict(deepcopy(self.document))  # it adds to it
        self.schema.app = self.api.app

    @property
    def headers(self):
        """Those of a new key: an example may revoke any other."""
        return {"Authorization": f"Bearer {self.api.make_key('admin', 'admin')}"}

    def ask(self, case, client):
        assume(not any(name == "" or value in ([], {}, "") for name, value in (case.query or {}).items()))
        excluded = list_excluded_checks(case)
        answer = case.call_and_validate(session=client, headers=self.headers, excluded_checks=excluded)
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == ["application/problem+json"]
        return answer


@pytest.fixture(scope="module")
def inspection(tmp_path_factory):
    inspection = Inspection(tmp_path_factory.mktemp("api"))
    logging.getLogger("httpx").setLevel(logging.WARNING)
    yield inspection
    inspection.api.close()


@pytest.fixture(scope="module")
def client(inspection):
    with asgi.get_client(inspection.api.app) as client:
        yield client


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_document_says_what_an_operation_does(inspection, client, operation):
    described = inspection.schema[operation.path][operation.method]
    cases = st.one_of([described.as_strategy(generation_mode=mode) for mode in MODES])

    @examples(24, database=None)
    @given(case=cases)
    def check(case):
        inspection.ask(case, client)

    check()


def test_operations_that_are_linked_go_together(inspection, tmp_path, monkeypatch):
    schema = schemathesis.openapi.from_dict(deepcopy(inspection.document))
    schema.app = inspection.api.app
    schema.config.generation.update(modes=[GenerationMode.POSITIVE])
    statuses = set()

    class Workflow(schema.as_state_machine()):
        def setup(self):
            # Each example begins with an empty store, and what is made at random is the same each time.
            numbers = itertools.count()
            monkeypatch.setattr(secrets, "token_hex", lambda _size: f"{next(numbers):012x}")
            monkeypatch.setattr(secrets, "token_urlsafe", lambda _size: f"{next(numbers):043x}")
            monkeypatch.setattr(time, "time_ns", lambda: 0)
            self.api = Asker(tmp_path)
            self.stack = ExitStack()
            self.client = self.stack.enter_context(asgi.get_client(self.api.app))

        def teardown(self):
            self.stack.close()
            self.api.close()

        def get_call_kwargs(self, _case):
            key = self.api.make_key("admin", "admin")
            return {"session": self.client, "app": self.api.app, "headers": {"Authorization": f"Bearer {key}"}}

        def validate_response(self, response, case, **_keywords):
            statuses.add((case.operation.method, response.status_code))
            case.validate_response(response, excluded_checks=list_excluded_checks(case))

    run_state_machine_as_test(Workflow, settings=examples(40, stateful_step_count=10, database=None))
    assert {("post", 201), ("get", 200), ("delete", 204)} <= statuses


# The document itself -----------------------------------------------------------------------------------------


def test_the_document_is_openapi_that_anybody_may_read(inspection):
    answer = inspection.api.get("/openapi.json", key="")
    assert answer.json() == inspection.document
    assert answer.json()["openapi"] == "3.1.0"
    assert inspection.schema.validate() is None


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_example_is_what_its_schema_says(inspection, operation):
    described = inspection.document["paths"][operation.path][operation.method.lower()]
    contents = [described.get("requestBody", {}).get("content", {})]
    contents += [answer.get("content", {}) for answer in described["responses"].values()]
    documents = [content for kinds in contents for content in kinds.values()]
    assert all(content.get("examples") for content in documents), operation.path
    for content in documents:
        schema = content["schema"] | {"components": inspection.document["components"]}
        for example in content["examples"].values():
            jsonschema.Draft202012Validator(schema).validate(example["value"])


def test_every_operation_has_a_name_of_its_own_and_words(inspection):
    names = [operation.name for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(operation.summary and operation.answers for operation in OPERATIONS)


def test_every_link_leads_to_an_operation(inspection):
    names = {operation.name for operation in OPERATIONS}
    links = [
        link
        for methods in inspection.document["paths"].values()
        for operation in methods.values()
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert links
    assert {link["operationId"] for link in links} <= names
