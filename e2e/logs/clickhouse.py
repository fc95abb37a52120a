"""Fills the collector's table with exports, as its exporter does, and answers queries over the view; in a directory."""

import json
import sys
from pathlib import Path

from chdb.session import Session
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

FOREIGN = "level=info msg=\"a line of another program\""


def main(directory):
    session = Session()
    session.query("CREATE DATABASE otel")
    session.query("USE otel")
    session.query((directory / "table.sql").read_text())
    session.query((directory / "view.sql").read_text().strip().rstrip(";"))
    rows = [row for export in json.loads((directory / "exports.json").read_text()) for row in records(bytes.fromhex(export))]
    rows.append(rows[0] | {"Body": FOREIGN})
    written = directory / "rows.jsonl"
    written.write_text("".join(json.dumps(row) + "\n" for row in rows))
    session.query(f"INSERT INTO otel_logs ({', '.join(rows[0])}) SELECT {', '.join(rows[0])} FROM file('{written}', JSONEachRow)")
    queries = json.loads((directory / "queries.json").read_text())
    print(json.dumps({name: answer(session, sql) for name, sql in queries.items()}))


def answer(session, sql):
    """The rows, or the error."""
    try:
        return [json.loads(line) for line in str(session.query(sql, "JSONEachRow")).splitlines()]
    except Exception as error:  # What chdb raises is no type of its own in every version.
        return str(error)


def records(export):
    """The columns that the exporter fills."""
    for resource in ExportLogsServiceRequest.FromString(export).resource_logs:
        of_resource = pairs(resource.resource.attributes)
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield {
                    "Timestamp": f"{record.time_unix_nano // 10**9}.{record.time_unix_nano % 10**9:09}",
                    "TraceId": record.trace_id.hex(),
                    "SpanId": record.span_id.hex(),
                    "TraceFlags": record.flags & 255,
                    "SeverityText": record.severity_text,
                    "SeverityNumber": record.severity_number,
                    "ServiceName": of_resource.get("service.name", ""),
                    "Body": record.body.string_value,
                    "ResourceAttributes": of_resource,
                    "ScopeName": scope.scope.name,
                    "LogAttributes": pairs(record.attributes),
                    "EventName": record.event_name,
                }


def pairs(attributes):
    return {each.key: str(getattr(each.value, each.value.WhichOneof("value"))) for each in attributes}


main(Path(sys.argv[1]))
