"""The figures as JSON, and as the tables of docs/tool-results-measured.md."""

import json
from collections import Counter

from stage import COMPRESS, CUT, PLAIN


def figures(measures, recorded):
    return {"compress": COMPRESS, "runs": [one.as_dict() for one in measures], "recorded": [one.as_dict() for one in recorded]}


def as_json(all_figures):
    return json.dumps(all_figures, indent=1, ensure_ascii=False) + "\n"


def tables(all_figures):
    """The lines of the tables, in Markdown."""
    runs = all_figures["runs"]
    agents = list(dict.fromkeys(run["agent"] for run in runs))
    yield from by_agent(runs, agents)
    yield ""
    # An agent that does a few tasks alone has no columns below.
    most = max((len(of(runs, CUT, agent=agent)) for agent in agents), default=0)
    agents = [agent for agent in agents if len(of(runs, CUT, agent=agent)) == most]
    yield from by_way(runs, agents)
    yield ""
    yield from by_kind(runs, agents)
    yield ""
    yield from by_task(runs, agents)
    yield ""
    yield from of_recordings(all_figures["recorded"])


def by_agent(runs, agents):
    yield "| agent | tasks | results cut | shortened by the agent itself | tokens without | with | change | cost with a cache of prompts | fetched from evidence | otherwise | found without fetching | not reachable | misses of a cache without, with |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for agent in agents:
        before, after = (of(runs, way, agent=agent) for way in (PLAIN, CUT))
        cut = [run for run in after if run["cut"]]
        ways = Counter(run["reached"] for run in cut)
        cells = [
            agent, len(after), len(cut), sum(bool(run["own"]) for run in before), *change(before, after), change(before, after, "cost")[2], ways["read"] + ways["searched"], ways["own"] + ways["again"],
            ways["first"], sum(run["reached"] == "never" for run in after), f"{total(before, 'misses')}, {total(after, 'misses')}",
        ]
        yield row(cells)


# What became of a task whose result was cut, by how its needed line was reached.
WAYS = {
    "": "nothing was needed",
    "first": "the line stood in what was left",
    "searched": "the line was searched for in the evidence",
    "read": "the evidence was read whole",
    "own": "the agent's own file was read or searched",
    "again": "the command was run again",
    "never": "the line was not reached",
}


def by_way(runs, agents):
    """Over the tasks whose result was cut."""
    yield "| of results that were cut | " + " | ".join(f"{agent}: tasks, tokens, cost" for agent in agents) + " |"
    yield "|---|" + "---|" * len(agents)
    for way, words in WAYS.items():
        cells = [words]
        for agent in agents:
            after = [run for run in of(runs, CUT, agent=agent, reached=way) if run["cut"]]
            names = {run["task"] for run in after}
            before = [run for run in of(runs, PLAIN, agent=agent) if run["task"] in names]
            cells.append(f"{len(after)}, {change(before, after)[2]}, {change(before, after, 'cost')[2]}" if after else "0")
        yield row(cells)


def by_kind(runs, agents):
    yield "| kind of output | " + " | ".join(f"{agent}: cut, change" for agent in agents) + " |"
    yield "|---|" + "---|" * len(agents)
    for kind in dict.fromkeys(run["kind"] for run in runs):
        cells = [kind]
        for agent in agents:
            before, after = (of(runs, way, agent=agent, kind=kind) for way in (PLAIN, CUT))
            cells.append(f"{sum(run['cut'] for run in after)} of {len(after)}, {change(before, after)[2]}")
        yield row(cells)


def by_task(runs, agents):
    yield "| task | " + " | ".join(f"{agent}: result, tokens without → with" for agent in agents) + " |"
    yield "|---|" + "---|" * len(agents)
    for task in dict.fromkeys(run["task"] for run in runs):
        yield row([task, *(told(of(runs, PLAIN, agent=agent, task=task), of(runs, CUT, agent=agent, task=task)) for agent in agents)])


def told(before, after):
    """What one task was for one agent."""
    if not before or not after:
        return ""
    (before,), (after,) = before, after
    states = ["shortened by the agent"] * bool(before["own"]) + [f"cut to {after['result']:,}"] * after["cut"]
    state = ", ".join(states) or "left"
    way = {"read": ", evidence read whole", "searched": ", searched in the evidence", "own": ", from the agent's own file", "again": ", run again", "never": ", **not reachable**"}.get(after["reached"], "")
    return f"{before['result']:,} {state}{way}; {before['tokens']:,} → {after['tokens']:,}"


def of_recordings(recorded):
    yield "| recorded requests of | with results | results | longest, tokens | tokens before | after |"
    yield "|---|---|---|---|---|---|"
    for dialect in dict.fromkeys(each["dialect"] for each in recorded):
        mine = [each for each in recorded if each["dialect"] == dialect]
        arrived = [each["after"] for each in mine if each["after"] is not None]
        compared = [each for each in mine if each["after"] is not None]
        yield row([dialect, len(mine), total(mine, "results"), max(each["longest"] for each in mine), total(compared or mine, "before"), sum(arrived) if arrived else "not sent"])


def of(runs, way, **wanted):
    return [run for run in runs if run["way"] == way and all(run[key] == value for key, value in wanted.items())]


def total(runs, key):
    return sum(run[key] for run in runs)


def change(before, after, key="tokens"):
    """Tokens before and after, and the change in percent."""
    before, after = total(before, key), total(after, key)
    return f"{before:,}", f"{after:,}", f"{(after - before) / before:+.1%}" if before else ""


def row(cells):
    return "| " + " | ".join(map(str, cells)) + " |"
