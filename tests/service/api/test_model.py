"""The API beside a dictionary: whatever is done in whatever order, both show the same subscriptions."""

import tempfile
from pathlib import Path
from urllib.parse import quote

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.examples import examples
from tests.service.api.asking import LINES, Asker, check_problem, to_lines

IDS = st.sampled_from(["s1", "s2", "a/b", "a:pause", "é ü", "%2F"])
OWNERS = st.sampled_from(["ann", "bob"])
FILTERS = st.sampled_from(["a = 1", "price < 900 and make = 'ford'", "b exists"])
LABELS = st.lists(st.sampled_from(["x", "y"]), unique=True, max_size=2)
BODIES = st.fixed_dictionaries({"filter": FILTERS}, optional={"labels": LABELS, "name": st.sampled_from(["n", "m"])})
CHANGES = st.fixed_dictionaries(
    {}, optional={"filter": FILTERS, "labels": st.none() | LABELS, "name": st.none() | st.sampled_from(["n", "m"])}
)


def expand(body, status="active"):
    return {"filter": body["filter"], "labels": body.get("labels") or [], "name": body.get("name"), "status": status}


class ApiBesideDictionary(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.api = Asker(Path(self.folder.name))
        self.keys = {owner: self.api.make_key(owner, "read", "write") for owner in ("ann", "bob")}
        self.model, self.answers, self.tags = {}, {}, {}

    def teardown(self):
        self.api.close()
        self.folder.cleanup()

    def ask(self, method, owner, id, verb="", **request):
        path = f"/v1/subscriptions/{quote(id, safe='')}{verb}"
        return self.api.ask(method, path, key=self.keys[owner], **request)

    def note(self, owner, id, answer):
        self.tags[owner, id] = answer.headers["etag"]

    @rule(owner=OWNERS, id=IDS, body=BODIES, key=st.none() | st.sampled_from(["k1", "k2"]))
    def create(self, owner, id, body, key):
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"id": id, **body}
        answer = self.api.post("/v1/subscriptions", json=body, key=self.keys[owner], headers=headers)
        if (owner, key) in self.answers:
            first_body, first = self.answers[owner, key]
            if first_body == body:
                assert (answer.status_code, answer.json()) == first
            else:
                check_problem(answer, 422)
        elif (owner, id) in self.model:
            check_problem(answer, 409)
        else:
            assert answer.status_code == 201
            self.model[owner, id] = expand(body)
            self.note(owner, id, answer)
            if key is not None:
                self.answers[owner, key] = body, (201, answer.json())

    @rule(owner=OWNERS, id=IDS, body=BODIES)
    def put(self, owner, id, body):
        answer = self.ask("PUT", owner, id, json=body)
        assert answer.status_code == (200 if (owner, id) in self.model else 201)
        self.model[owner, id] = expand(body)
        self.note(owner, id, answer)

    @rule(owner=OWNERS, id=IDS, change=CHANGES)
    def patch(self, owner, id, change):
        answer = self.ask("PATCH", owner, id, json=change)
        if (owner, id) not in self.model:
            check_problem(answer, 404)
            return
        assert answer.status_code == 200
        row = self.model[owner, id]
        self.model[owner, id] = expand(row | change, row["status"])
        self.note(owner, id, answer)

    @rule(owner=OWNERS, id=IDS, body=BODIES, is_stale=st.booleans())
    def put_conditionally(self, owner, id, body, is_stale):
        tag = '"0-0"' if is_stale else self.tags.get((owner, id), '"none"')
        answer = self.ask("PUT", owner, id, json=body, headers={"If-Match": tag})
        if is_stale or (owner, id) not in self.model:
            check_problem(answer, 412)
            return
        assert answer.status_code == 200
        self.model[owner, id] = expand(body)
        self.note(owner, id, answer)

    @rule(owner=OWNERS, id=IDS, verb=st.sampled_from(["pause", "resume"]))
    def change_status(self, owner, id, verb):
        answer = self.ask("POST", owner, id, f":{verb}")
        if (owner, id) not in self.model:
            check_problem(answer, 404)
            return
        assert answer.status_code == 200
        self.model[owner, id] = self.model[owner, id] | {"status": "paused" if verb == "pause" else "active"}
        self.note(owner, id, answer)

    @rule(owner=OWNERS, id=IDS)
    def remove(self, owner, id):
        answer = self.ask("DELETE", owner, id)
        assert answer.status_code == (204 if (owner, id) in self.model else 404)
        self.model.pop((owner, id), None)

    @rule(owner=OWNERS, rows=st.dictionaries(IDS, BODIES, max_size=3), bad=st.booleans(), partial=st.booleans())
    def import_lines(self, owner, rows, bad, partial):
        lines = [{"id": id, **body} for id, body in rows.items()] + ([{"id": "bad", "filter": "("}] if bad else [])
        params = {"partial": str(partial).lower()}
        path = "/v1/subscriptions:import"
        answer = self.api.post(path, content=to_lines(lines), key=self.keys[owner], headers=LINES, params=params)
        if bad and not partial:
            check_problem(answer, 422)
            return
        assert answer.json()["imported"] == len(rows)
        self.model |= {(owner, id): expand(body) for id, body in rows.items()}
        for id in rows:
            self.note(owner, id, self.ask("GET", owner, id))

    @rule(owner=OWNERS)
    def erase(self, owner):
        assert self.api.delete(f"/v1/owners/{owner}").status_code == 200
        self.model = {key: row for key, row in self.model.items() if key[0] != owner}
        self.answers = {key: answer for key, answer in self.answers.items() if key[0] != owner}
        self.keys[owner] = self.api.make_key(owner, "read", "write")

    @rule(owner=OWNERS, id=IDS)
    def read(self, owner, id):
        answer = self.ask("GET", owner, id)
        if (owner, id) not in self.model:
            check_problem(answer, 404)
            return
        self.compare(answer.json(), self.model[owner, id])
        assert answer.headers["etag"] == self.tags[owner, id]

    @rule(
        owner=OWNERS,
        label=st.sampled_from([None, "x"]),
        status=st.sampled_from([None, "paused"]),
        limit=st.integers(1, 4),
    )
    def list(self, owner, label, status, limit):
        params = {name: value for name, value in (("label", label), ("status", status), ("limit", limit)) if value}
        rows, cursor = [], None
        while True:
            page = self.api.get(
                "/v1/subscriptions", params=params | ({"cursor": cursor} if cursor else {}), key=self.keys[owner]
            ).json()
            assert len(page["subscriptions"]) <= limit
            rows += page["subscriptions"]
            if (cursor := page["next"]) is None:
                break
        expected = {
            id: row
            for (own, id), row in self.model.items()
            if own == owner and (label is None or label in row["labels"]) and status in (None, row["status"])
        }
        assert [row["id"] for row in rows] == sorted(expected)
        for row in rows:
            self.compare(row, expected[row["id"]])

    @invariant()
    def counts_agree(self):
        counts = self.api.get("/v1/status", params={"owner": "*"}).json()["subscriptions"]
        assert sum(counts.values()) == len(self.model)

    def compare(self, row, expected):
        assert {name: row[name] for name in expected} == expected


class TestApiBesideDictionary(ApiBesideDictionary.TestCase):
    settings = examples(50, stateful_step_count=25)
