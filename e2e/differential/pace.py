"""What an event of a stream costs: the gateway as a whole beside both peers' adapters alone, without their servers.

python3 e2e/run.py differential/pace [POSTERN]

CPU time of the process for each event of the same Chat stream of text, in µs, the median of the rounds. The gateway's has
TLS, HTTP, policy, guard and events in it. Build it with `cargo build --release` first.
"""

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from packages import TARGET, Packages
from runner import ROOT
from stage import SSE, Stage

HERE = Path(__file__).resolve().parent
EVENTS, ROUNDS = 2_000, 5
# Streams of a round. The system counts time in hundredths of a second.
STREAMS = {"gateway": 200, "litellm": 10, "llms": 40}
REQUEST = {"max_tokens": 64, "stream": True, "messages": [{"role": "user", "content": "go"}]}


def stream():
    """An answer of text, an event a few words."""
    said = json.dumps({"id": "c", "choices": [{"index": 0, "delta": {"content": "some words "}, "finish_reason": None}]})
    end = json.dumps({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return f"data: {said}\n\n" * EVENTS + f"data: {end}\n\ndata: [DONE]\n\n"


def cpu(process):
    """User and system time that a process has used, in seconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    postern = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/release/postern"
    each = SimpleNamespace(terms={}, request=REQUEST, answer=stream(), is_stream=True)
    with tempfile.TemporaryDirectory(prefix="postern-pace-") as directory:
        with Stage(postern, Packages(HERE, TARGET / "differential"), [each], Path(directory)) as stage:
            question = {"request": REQUEST, "answer": each.answer, "stream": True}
            asked = {"gateway": (stage.gateway.process, lambda: stage.ours(each))}
            asked |= {name: (peer.process, lambda peer=peer: peer.ask(question)) for name, peer in stage.peers.items()}
            costs = {name: [] for name in asked}
            for _ in range(ROUNDS):
                for name, (process, ask) in asked.items():
                    said = ask()["events"].count("some words ")
                    assert said == EVENTS, f"{name} told {said} of {EVENTS} events"
                    before = cpu(process)
                    for _ in range(STREAMS[name]):
                        ask()
                    costs[name].append((cpu(process) - before) / STREAMS[name] / EVENTS * 1e6)
    ours = statistics.median(costs["gateway"])
    for name, several in costs.items():
        middle = statistics.median(several)
        print(f"{name:<8} {middle:8.2f} µs an event ({min(several):.2f}-{max(several):.2f}), {middle / ours:6.1f} times the gateway's")


main()
