"""Measures what compression of tool results does to the requests of real agents, and to the recorded conversations.

python3 e2e/run.py tool-results [--postern PATH] [--agent NAME]… [--only WORD]… [--report FILE] [--plain] [--verbose] [--keep]

Each task runs twice against a stand-in model, without `toolOutputs` and with it. The figures go to FILE as JSON, and as
tables to the end of what is printed.
"""

import copy
from functools import partial
from pathlib import Path

import recordings
import report
from agents import AGENTS
from install import PROGRAMS, Tools
from measure import measured
from prefixes import misses
from runner import POSTERN, Suite, executable, run
from stage import CUT, PLAIN, URL, Stage
from standin import DIALECTS
from steps import Step
from tasks import TASKS


# Agents that do a few tasks alone: these.
FEW = {"subscription": 2}
# The tasks whose evidence is fetched from the gateway's own name, too.
BY_URL = ("cat of a table, a row of 700", "a service's log, an order", "go test, its message, status masked")
# The tasks in which the gateway gets another policy, and is killed and started.
INTERRUPTED = ("a service's log with a traceback", "find, 600 files, one of them")
# Kinds whose outputs are equal each time.
STEADY = ("data", "history", "listing", "log")


def stages(options):
    tools = Tools()
    yield "real agents", partial(Stage, tools, options.postern, compares=not options.plain), partial(steps, options)


def steps(options, stage):
    stage.measures, stage.recorded = [], []
    yield Step("recorded conversations", recorded)
    for name in options.agent or AGENTS:
        tasks = [task for task in TASKS if name not in FEW or task.name in BY_URL[: FEW[name]]]
        for task in tasks:
            yield Step(f"{AGENTS[name].name}: {task.name}", partial(examine, AGENTS[name], task))
        for task in tasks:
            if task.name in BY_URL and name not in FEW:
                yield Step(f"{AGENTS[name].name}: {task.name}, by URL", partial(examine_url, AGENTS[name], task))
        for task in tasks:
            if task.name in BY_URL and name == "codex" and not options.plain:
                yield Step(f"{AGENTS[name].name}: {task.name}, over WebSocket", partial(examine_websocket, AGENTS[name], task))
        for task in tasks:
            if task.name in INTERRUPTED and name not in FEW and not options.plain:
                yield Step(f"{AGENTS[name].name}: {task.name}, interrupted", partial(examine_interrupted, AGENTS[name], task))


def recorded(stage, step):
    stage.recorded = recordings.measured(stage, stage.gateways[CUT])
    step.check("recordings hold results", stage.recorded, stage.recorded)


def examine(agent, task, stage, step):
    before, turns = measure(agent, task, PLAIN, stage, step)
    after, _ = measure(agent, task, CUT, stage, step)
    step.notes = [f"{before.tokens} -> {after.tokens} tokens in {before.turns} -> {after.turns} turns; {after.reached or 'needs nothing'}; {after.own}"]
    step.check("what is needed can be reached", after.reached != "never", after)
    step.check("no further miss of a cache", after.misses <= before.misses, (before.misses, after.misses))
    step.check("a changed result would be one", changed_misses(agent, turns) > before.misses, before.misses)
    if after.cut and task.kind in STEADY and agent.is_plain:
        step.check("evidence is what was sent without", first_result(agent, turns) in stage.evidence(CUT), after)


def examine_url(agent, task, stage, step):
    after, _ = measure(agent, task, URL, stage, step)
    step.notes = [f"{after.tokens} tokens in {after.turns} turns; {after.reached}"]
    step.check("what is needed can be reached", after.reached != "never", after)


def examine_websocket(agent, task, stage, step):
    status, said, seen, messages = stage.run_over_websocket(agent, task, CUT)
    one = measured(agent, task, "over WebSocket", status, seen)
    step.notes = [f"{messages} messages, {one.turns} turns; {one.reached}"]
    step.check("it comes to its end", one.ended, (status, one, said[-1500:]))
    step.check("every turn is a message", messages >= one.turns > 1, (messages, one))
    step.check("the result is cut", one.cut, one)
    step.check("what is needed can be reached", one.reached != "never", one)


def examine_interrupted(agent, task, stage, step):
    status, said, seen = stage.run_interrupted(agent, task)
    turns = [body for body, _ in seen]
    one = measured(agent, task, "interrupted", status, seen)
    step.notes = [f"{one.turns} turns; {one.reached}"]
    step.check("it comes to its end", one.ended, (status, one, said[-1500:]))
    step.check("another policy, then an end", stage.interrupts == ["policy", "end"], stage.interrupts)
    results = {DIALECTS[agent.host].results(turn)[0] for turn in turns[1:]}
    step.check("the first result stays the same", one.cut and len(results) == 1, (one, len(results)))
    step.check("no miss of a cache", one.misses == 0, one)
    step.check("a changed result would be one", changed_misses(agent, turns) > 0, one)


def measure(agent, task, way, stage, step):
    """The figures of one run, which are kept, and the bodies of its turns."""
    status, said, seen = stage.run(agent, task, way)
    one = measured(agent, task, way, status, seen)
    stage.measures.append(one)
    step.check(f"it comes to its end {way}", one.ended, (status, one, said[-1500:]))
    return one, [body for body, _ in seen]


def first_result(agent, turns):
    return DIALECTS[agent.host].results(turns[-1])[0]


def changed_misses(agent, turns):
    """The misses of these turns, had somebody changed the first result in the last of them."""
    dialect, last = DIALECTS[agent.host], copy.deepcopy(turns[-1])
    dialect.replace_first(last, "changed")
    return misses(dialect, [*turns[:-1], last])


def closing(options, runs):
    (stage,) = [each.stage for each in runs]
    figures = report.figures(stage.measures, stage.recorded)
    if options.report:
        Path(options.report).write_text(report.as_json(figures))
    yield from report.tables(figures)


run(Suite("tool-results", __doc__.splitlines()[0], stages, programs=PROGRAMS, closing=closing, options={
    "--postern": executable(POSTERN),
    "--agent": {"action": "append", "choices": list(AGENTS), "help": "these agents alone"},
    "--report": {"metavar": "FILE", "help": "where the figures are written as JSON"},
    "--plain": {"action": "store_true", "help": "without `toolOutputs` on either side: all figures must be equal"},
}))
