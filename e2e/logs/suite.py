"""Runs every query of deploy/observability in ClickHouse, over the collector's own table with the records of a real gateway.

python3 e2e/run.py logs [--postern PATH] [--only WORD]… [--verbose] [--keep]

ClickHouse is the package chdb; the table is the one that the collector's exporter makes, read from its Go module.
"""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import gateway
from commands import run as output_of
from packages import TARGET, changed
from runner import POSTERN, ROOT, Suite, executable, run
from steps import Step

HERE = Path(__file__).resolve().parent
OBSERVABILITY = ROOT / "deploy/observability"
EXPORTER = "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter@v0.161.0"


class Store:
    """The records of one run, and the ClickHouse that is asked about them."""

    def __init__(self, postern, directory):
        self.directory = directory
        self.python = installed()
        self.events, exports = gateway.run(postern, directory)
        (directory / "exports.json").write_text(json.dumps([export.hex() for export in exports]))
        (directory / "table.sql").write_text(table())
        view = (OBSERVABILITY / "clickhouse/view.sql").read_text()
        (directory / "view.sql").write_text(view)

    def ask(self, queries):
        """The rows of each query, or its error, by its name."""
        (self.directory / "queries.json").write_text(json.dumps(queries))
        return json.loads(output_of(self.python, HERE / "clickhouse.py", self.directory))


def installed():
    """A Python with the packages of requirements.txt."""
    venv = TARGET / "e2e-logs" / "venv"
    wanted = HERE / "requirements.txt"
    if changed(wanted, venv / "requirements.txt"):
        output_of("python3", "-m", "venv", "--clear", venv)
        output_of(venv / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", wanted, env=os.environ)
        shutil.copy(wanted, venv)
    return venv / "bin/python"


def table():
    """The exporter's table, with its own columns; its template's indexes and engine change no answer."""
    said = subprocess.run(["go", "mod", "download", "-json", EXPORTER], capture_output=True, text=True, check=True, cwd="/")
    template = Path(json.loads(said.stdout)["Dir"]) / "internal/sqltemplates/logs_table.sql"
    columns = [line.strip().rstrip(",") for line in template.read_text().splitlines() if line.strip().startswith("`")]
    if len(columns) < 15:
        raise RuntimeError(f"no columns in {template}")
    return f"CREATE TABLE otel_logs ({', '.join(columns)}) ENGINE = MergeTree ORDER BY (ServiceName, Timestamp)"


def statements():
    """The queries of the documents, by their comment."""
    for part in (OBSERVABILITY / "clickhouse/queries.sql").read_text().split(";\n"):
        if part.strip():
            title, _, sql = part.strip().partition("\n")
            yield title.removeprefix("-- "), sql


def panels():
    """The queries of the dashboard as Grafana sends them."""
    dashboard = json.loads((OBSERVABILITY / "grafana/events.json").read_text())
    for panel in dashboard["panels"]:
        yield panel["title"], panel["targets"][0]["rawSql"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]


def filled(sql, denied):
    """A query with what a user or Grafana puts in."""
    values = {
        "{id:String}": f"'{denied['id']}'",
        "{session:String}": f"'{gateway.SESSION}'",
        "${event:sqlstring}": f"'{denied['id']}'",
        "${namespace:sqlstring}": f"'{gateway.NAMESPACE}'",
        "$__timeFilter(time)": "time >= now() - INTERVAL 1 HOUR AND time <= now() + INTERVAL 1 HOUR",
        "$__timeInterval(time)": "toStartOfInterval(toDateTime(time), INTERVAL 60 second)",
    }
    for name, value in values.items():
        sql = sql.replace(name, value)
    return sql


# Answers of which a sound run has none.
EMPTY = ("Pods whose events are not all there",)


def answered(queries, store, step):
    denied = next(event for event in store.events if event["kind"] == "ToolCall")
    asked = {title: filled(sql, denied) for title, sql in queries()}
    for title, answer in store.ask(asked).items():
        step.check(f"it is answered: {title}", isinstance(answer, list), answer)
        step.check(f"it has rows: {title}", bool(answer) != title.startswith(EMPTY), answer)


def whole(store, step):
    """Nothing is lost or changed on the way into the view."""
    rows = store.ask({"all": "SELECT event FROM postern_events ORDER BY sequence"})["all"]
    step.check("each event is there, as on standard output", [json.loads(row["event"]) for row in rows] == store.events, len(rows))
    asked = {
        "denied": "SELECT rule, tool, session, model FROM postern_events WHERE kind = 'ToolCall'",
        "tokens": "SELECT sum(input_tokens) AS input, sum(output_tokens) AS output FROM postern_events WHERE kind = 'Response'",
        "gap": "SELECT max(sequence) - uniqExact(sequence) AS missing FROM (SELECT * FROM postern_events WHERE sequence != 3)",
        "foreign": "SELECT count() AS count FROM otel_logs WHERE NOT startsWith(Body, '{\"apiVersion\"')",
    }
    answers = store.ask(asked)
    denied = {"rule": "agents/coders/no-rm", "tool": "Bash", "session": gateway.SESSION, "model": gateway.MODEL}
    step.check("the denied call has its rule, tool, session and model", answers["denied"] and answers["denied"][0] == denied, answers["denied"])
    step.check("tokens are counted", [int(value) for value in answers["tokens"][0].values()] == list(gateway.TOKENS), answers["tokens"])
    step.check("an event that is missing is seen", int(answers["gap"][0]["missing"]) == 1, answers["gap"])
    step.check("a line of another program is in the table, and not in the view", int(answers["foreign"][0]["count"]) == 1, answers["foreign"])


def steps(_stage):
    yield Step("the records are those of standard output", whole)
    yield Step("the queries of the documents", partial(answered, statements))
    yield Step("the panels of the dashboard", partial(answered, panels))


@contextmanager
def stored(postern, directory):
    yield Store(postern, directory)


def stages(options):
    yield "records of a gateway in ClickHouse", partial(stored, options.postern), steps


if __name__ == "__main__":
    programs = {"go": "golang", "openssl": "openssl", "curl": "curl"}
    run(Suite("logs", __doc__.splitlines()[0], stages, programs, {"--postern": executable(POSTERN)}))
