"""Writes docs/events.md, the page about events, from their schema (docs/event.schema.json).

python3 scripts/events.py [--check]    # with --check: exit status 1 where the page is not what it would write
"""

import json
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"

INTRODUCTION = """\
# Events

<!-- Written by scripts/events.py from docs/event.schema.json, which is made from the types: run `just generate`. -->

A gateway writes an event for everything that it decides: a JSON object on one line, on standard output (`kubectl logs -c postern-gateway`), or in a file of each `postern run` ([laptop.md](laptop.md#what-is-kept-and-where)).
No event holds a body, a query, a header or a key. Host, path, names of tools and models, sessions and reasons may be what an agent, a model or a server chose: treat them as data of others.

```sh
postern ledger tail -f                                    # what happens in the newest run
postern ledger query --verdict Deny --since 1h            # what was denied
postern ledger query --tool Bash --rule no-force -o json | jq .toolCall
postern ledger show 01a2008d-747b-7101-8101-010101010101  # one event whole, with the others of its exchange
postern policy explain --policy policy.yaml --event 01a2008d-747b-7101-8101-010101010101
kubectl logs POD -c postern-gateway | postern ledger query --ledger - --kind ToolCall
```

## Reading them

| option | |
|---|---|
| `--ledger FILE` | a [ledger](ledger.md), a file of JSON lines, a directory of them (`*.jsonl`), or `-`; without it the newest run of `postern run`, and for `show` and `explain --event` all runs |
| `--since`, `--until` | `90s`, `10m`, `2h` or `3d` ago, `2026-11-22`, or `2026-11-22T10:00:00Z` |
| `--kind`, `--verdict` | one of the words [below](#fields) |
| `--rule` | the rule's id, or its name alone |
| `--host`, `--tool`, `--model`, `--session`, `--exchange` | `*` stands for any text |
| `-o json` | the events as they are, one on a line |

Several options have to hold together; of the values of one (repeated, or with commas) any. Case does not matter.
`query` prints events in the order in which they were written, those of a directory file by file in the order of their names (of runs these begin with the time of the start), at most `--limit` of them (10,000). `tail` prints the last 20 (`-n`), and with `-f` those that come.
A line that is no event or longer than 8 MiB is passed over, and a last line that is torn (its writer was stopped, or is writing) is left; both are said on standard error. What would move a terminal's cursor, change its colours or hide is shown escaped.

## What may be relied on

`apiVersion` is `postern.dev/event/v1`. Under it fields may be added, and words to `transforms` and reasons; no field goes or changes its meaning. A field that does not apply is left out, never null. [event.schema.json](event.schema.json) says the same to programs (JSON Schema, draft 2020-12).

Events of one connection share `connection`, those of one exchange `exchange`. `sequence` counts from 1 for each start of a gateway: where a number is missing, lines were lost.
Refusals that repeat are counted in one event with `count` and `last`; what was allowed, and every tool call, is an event by itself. `postern ledger show` finds an id that was counted.

## Fields

`?` marks a field that is left out where it does not apply.
"""


def main():
    schema = json.loads((DOCS / "event.schema.json").read_text())
    page, written = DOCS / "events.md", INTRODUCTION + tables(schema)
    if "--check" not in sys.argv[1:]:
        page.write_text(written)
    elif not page.exists() or page.read_text() != written:
        print("docs/events.md is not what docs/event.schema.json says: run `just generate`", file=sys.stderr)
        return 1
    return 0


def tables(schema):
    """The fields of an event, then those of each group, in the order in which events have them."""
    parts = [table(schema, schema)]
    for name, group in groups(schema, schema):
        parts.append(f"\n### `{name}`\n")
        parts.append(table(schema, group))
    return "".join(parts)


def groups(schema, node, seen=()):
    """Every object below, once, by the first path at which it stands."""
    found = []
    for field, about in node.get("properties", {}).items():
        many = "items" in about
        target, name = resolved(schema, about["items"] if many else about), field + ("[]" if many else "")
        if "properties" in target and target.get("title", name) not in seen:
            found.append((name, target))
            found += [(f"{name}.{below}", group) for below, group in groups(schema, target)]
    return found


def table(schema, node):
    rows = ["\n| field | | |\n", "|---|---|---|\n"]
    for field, about in node["properties"].items():
        always = "" if field in node.get("required", []) else "?"
        rows.append(f"| `{field}`{always} | {kind(schema, about)} | {described(schema, about)} |\n")
    return "".join(rows)


def kind(schema, about):
    if "items" in about:
        return f"list of {kind(schema, about['items'])}"
    target = resolved(schema, about)
    if words(target):
        return " ".join(f"`{word}`" for word, _ in words(target))
    if "properties" in target:
        return "group"
    known = {"uuid": "UUID", "date-time": "time, RFC 3339 in UTC"}
    return known.get(target.get("format"), {"integer": "number", "boolean": "`true` or `false`", "string": "text"}[target["type"]])


def described(schema, about):
    target = resolved(schema, about)
    items = resolved(schema, about["items"]) if "items" in about else {}
    own = about.get("description") or target.get("description") or items.get("description", "")
    said = [f"`{word}`: {text}" for word, text in words(target) if text]
    return " ".join([" ".join(own.split())] + said).strip().replace("|", "\\|")


def words(target):
    """The words that a field may have, each with what it means."""
    pairs = [(word, "") for word in target.get("enum", [])]
    for choice in target.get("oneOf", []):
        if "const" in choice:
            pairs.append((choice["const"], " ".join(choice.get("description", "").split())))
        pairs += [(word, "") for word in choice.get("enum", [])]
    return pairs


def resolved(schema, about):
    if "$ref" not in about:
        return about
    return schema["$defs"][about["$ref"].removeprefix("#/$defs/")]


if __name__ == "__main__":
    sys.exit(main())
