"""Has the official SDKs judge recorded answers that went through the built gateway, with and without denied calls.

python3 e2e/sdks/run.py [--postern PATH] [--only WORD] [--require] [--verbose] [--keep]

The recordings are in the directory that POSTERN_RECORDINGS names. An SDK must reject what it rejects unmodified, and in
the same words, unless the call over which it does was denied; it may reject nothing else.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "clients"))

import recordings
from packages import TARGET, Packages
from policies import DENIED, HELD, batches, policy
from stage import Stage
from verdicts import calls, differences, legible, same, stopped, text

HERE = Path(__file__).resolve().parent
# How many bytes a write of the upstream has; 0 is all at once.
PIECES = [0, 1369, 61]
# Beyond this many bytes an answer is not sent byte by byte.
BYTE_BY_BYTE = 4 << 10
PASSES = ["observed", "held", "every other call denied", "everything denied"]
# Behind each event the upstream says what the gateway says once a minute while it holds a call.
KEPT_ALIVE = "kept alive"


class Trial:
    """Everything that was judged: for each SDK, policy and dialect what was accepted, of how many; and each failure."""

    def __init__(self, stage, answers):
        self.stage, self.answers = stage, answers
        self.counts, self.failures, self.rejected, self.stopped = Counter(), [], [], []

    def straight(self):
        """What each SDK makes of the recordings without a gateway, compared with what was recorded of that."""
        judged = self._judge(self.stage.judges(direct=True), self.answers, 0)
        for (language, name), verdict in judged.items():
            expected = self.answers[name].expected.get(language, {"ok": verdict["ok"]})
            told = {key: value for key, value in expected.items() if key not in ("api", "error")}
            differing = [key for key in told if verdict.get(key) != told[key]]
            self._note(language, "straight", self.answers[name], [f"{key}: {verdict.get(key)}, not {told[key]}" for key in differing])
            if not verdict["ok"]:
                self.rejected.append(f"{language} {name}: {verdict['error']}")
        self.before = {key: verdict for key, verdict in judged.items() if verdict["ok"]}
        disputed = {name: self.answers[name] for (_, name), verdict in judged.items() if not verdict["ok"]}
        # What is rejected is asked in one write: Google's SDK for Node goes by what comes at once.
        again = self._judge(self.stage.judges(direct=True), disputed, None)
        self.errors = {key: again[key]["error"] for key, verdict in judged.items() if not verdict["ok"] and not again[key]["ok"]}
        self.judges = self.stage.judges(direct=False)

    def kept_alive(self):
        """`response.in_progress` between any two events changes nothing that an SDK reads."""
        streams = {name: each for name, each in self.answers.items() if each.dialect == "responses" and each.stream}
        judges = self.stage.judges(direct=True)
        for (language, name), before in self.before.items():
            if name in streams:
                got = judges[language].ask(streams[name], "kept-alive")
                differing = [key for key in before if got.get(key) != before[key]]
                wrong = [f"{key}: {got.get(key)}, not {before[key]}" for key in differing]
                self._note(language, KEPT_ALIVE, streams[name], wrong)

    def unchanged(self, which, rules):
        """Nothing is denied: SDKs read the same, and the bytes are the same."""
        self.stage.apply(policy(*rules))
        with ThreadPoolExecutor() as beside:
            raw = beside.submit(lambda: [self._raw(which, recording) for recording in self.answers.values()])
            after = self._judge(self.judges, self.answers, PASSES.index(which))
            raw.result()
        self._rejected_alike(which)
        for (language, name), verdict in self.before.items():
            got = after[language, name]
            if rules and self.answers[name].several:
                self._only_the_first(language, which, name, after)
                continue
            read = legible(self.answers[name].dialect, verdict)
            if rules and read != calls(self.answers[name].dialect, verdict):
                self._compare(language, which, name, verdict, (got, read))
            elif not self._gave_up(language, which, name, got):
                differing = [key for key in verdict if got.get(key) != verdict[key]] if got["ok"] else ["error"]
                wrong = [f"{key}: {got.get(key)}, not {verdict.get(key)}" for key in differing]
                self._note(language, which, self.answers[name], wrong)

    def _raw(self, which, recording):
        sent = recording.file.read_bytes()
        if which == PASSES[1] and (self._is_disputed(recording.name) or self._is_edited(recording) or recording.several):
            return
        held = recording.type == recordings.SSE and which == PASSES[1]
        differs = lambda piece: not same(sent, self.stage.fetch(recording, piece), held)  # noqa: E731
        pieces = PIECES + ([1] if len(sent) <= BYTE_BY_BYTE else [])
        wrong = [f"other bytes, sent in pieces of {piece}" for piece in pieces if differs(piece)]
        self._note("bytes", which, recording, wrong)

    def everything_denied(self):
        self.stage.apply(policy(DENIED))
        which = PASSES[3]
        after = self._judge(self.judges, self.answers, 3)
        self._rejected_alike(which)
        for (language, name), verdict in self.before.items():
            if self.answers[name].several:
                self._only_the_first(language, which, name, after)
            else:
                self._compare(language, which, name, verdict, (after[language, name], []))

    def _rejected_alike(self, which):
        """What an SDK rejects unmodified it rejects in the same words, unless a refusal stands where it was disputed."""
        disputed = {name: self.answers[name] for _, name in self.errors}
        after = self._judge(self.judges, disputed, None)
        for (language, name), error in self.errors.items():
            got, recording = after[language, name], self.answers[name]
            is_same = not got["ok"] and got["error"] == error
            if is_same or which == PASSES[0] or not (self._is_mended(recording, got) or self._is_ended(recording)):
                self._note(language, which, recording, [] if is_same else [f"{got.get('error', 'accepted')}, not {error}"])

    def _is_ended(self, recording):
        """Whether the gateway ends an answer, and says so; not every SDK hands on why."""
        return b"[postern] Answer stopped" in self.stage.fetch(recording, 0)

    def _is_mended(self, recording, got):
        """Whether an SDK reads what it rejected since a call was denied, the stream got the end that it lacked, or what
        stood behind its end is gone."""
        is_cut = recording.type == recordings.SSE and not recording.file.read_bytes().endswith((b"\n\n", b"\r\n\r\n"))
        return got["ok"] and (is_cut or bool(recording.several) or "[postern]" in text(recording.dialect, got))

    def _only_the_first(self, language, which, name, after):
        """Of several answers one after the other, the first alone goes on."""
        first = self.answers[name].several
        got = {key: after[language, each] for key, each in (("all", name), ("first", first))}
        wrong = [] if got["all"] == got["first"] else [f"{got['all']}, not {got['first']}"]
        self._note(language, which, self.answers[name], wrong)

    def every_other(self):
        """One policy for as many recordings as can share it, by what Python reads, or Node where Python reads nothing."""
        which, known = PASSES[2], {}
        for (_, name), verdict in reversed(self.before.items()):
            known[name] = [call for call in calls(self.answers[name].dialect, verdict) if call.is_named()]
        alone = {name: known[name] for name, each in self.answers.items() if known.get(name) and not each.several}
        for batch in batches(alone):
            self.stage.apply(batch.policy())
            members = {name: self.answers[name] for name in batch.members}
            after = self._judge(self.judges, members, 2)
            for (language, name), got in after.items():
                if (language, name) in self.before:
                    self._compare(language, which, name, self.before[language, name], (got, self._kept(batch, language, name)))

    def _kept(self, batch, language, name):
        """What this SDK must still hand on: ids and inputs are as it reads them."""
        mine = calls(self.answers[name].dialect, self.before[language, name])
        gone = [(call.name, call.given) for call in batch.members[name][0] if call not in batch.kept(name)]
        return [call for call in mine if (call.name, call.given) not in gone]

    def _compare(self, language, which, name, before, outcome):
        after, kept = outcome
        recording = self.answers[name]
        if not self._gave_up(language, which, name, after):
            self._note(language, which, recording, differences(recording.dialect, before, after, kept))

    def _gave_up(self, language, which, name, after):
        """Whether the gateway ended an answer that the SDKs themselves dispute: one of them rejects it unmodified."""
        gave_up = stopped(after) and self._is_disputed(name)
        if gave_up:
            self.stopped.append(f"{language}, {which}: {name}: {after['error']}")
        return gave_up

    def _is_edited(self, recording):
        """Whether something in it is left out or denied under any rule."""
        verdict = self.before["python", recording.name]
        read = calls(recording.dialect, verdict)
        return recording.name in recordings.IRREGULAR or legible(recording.dialect, verdict) != read

    def _is_disputed(self, name):
        return any((language, name) not in self.before for language in self.judges)

    def _note(self, judge, which, recording, wrong):
        kind = f"{recording.dialect}, {'streamed' if recording.stream else 'whole'}"
        self.counts[judge, which, kind, "total"] += 1
        self.counts[judge, which, kind, "accepted"] += not wrong
        self.failures += [f"{judge}, {which}: {recording.name}: {problem[:700]}" for problem in wrong]

    def _judge(self, judges, answers, turn):
        """Each judge's verdict on each recording; the judges work side by side, and each turn cuts answers otherwise, none
        not at all."""

        def one(language):
            pieces = {name: 0 if turn is None else PIECES[(turn + number) % len(PIECES)] for number, name in enumerate(answers)}
            return {(language, name): judges[language].ask(recording, pieces[name]) for name, recording in answers.items()}

        with ThreadPoolExecutor() as side_by_side:
            return {key: verdict for each in side_by_side.map(one, judges) for key, verdict in each.items()}

    def table(self):
        """Accepted of total, a line a dialect, a column for each judge and policy."""
        columns = [(judge, which) for which in ["straight", KEPT_ALIVE, *PASSES] for judge in ("python", "node", "bytes")]
        columns = [each for each in columns if any(key[:2] == each for key in self.counts)]
        cell = lambda column, kind, what: self.counts[(*column, kind, what)]  # noqa: E731
        kinds = sorted({key[2] for key in self.counts})
        rows = [[kind, *(f"{cell(each, kind, 'accepted')}/{cell(each, kind, 'total')}" for each in columns)] for kind in kinds]
        sums = lambda each, what: sum(cell(each, kind, what) for kind in kinds)  # noqa: E731
        rows.append(["all", *(f"{sums(each, 'accepted')}/{sums(each, 'total')}" for each in columns)])
        heads = [["", *(which for _, which in columns)], ["", *(judge for judge, _ in columns)]]
        widths = [max(len(row[at]) for row in rows + heads) for at in range(len(columns) + 1)]
        return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in heads + rows]


def main():
    arguments = parse()
    # Ended from outside, it still removes what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    place, started = recordings.directory(), time.monotonic()
    if place is None:
        sys.exit("FAIL  recordings absent" if arguments.require else print("skipped: recordings absent"))
    directory = Path(tempfile.mkdtemp(prefix="postern-sdks-"))
    try:
        trial = judged(arguments, place, directory)
    except (OSError, RuntimeError) as error:
        sys.exit(f"FAIL  what the SDKs meet cannot be started: {error}")
    finally:
        if arguments.keep:
            print(f"what was logged is in {directory}")
        else:
            shutil.rmtree(directory)
    print(*trial.table(), "", sep="\n")
    print(*(f"rejected unmodified: {line.splitlines()[0][:160]}" for line in trial.rejected), sep="\n")
    print(*(f"stopped, since SDKs dispute it: {line[:240]}" for line in trial.stopped), sep="\n")
    print(*(f"FAIL  {line if arguments.verbose else line.splitlines()[0]}" for line in trial.failures), sep="\n")
    total = sum(count for key, count in trial.counts.items() if key[3] == "total")
    accepted = sum(count for key, count in trial.counts.items() if key[3] == "accepted")
    print(f"{accepted} of {total} accepted in {time.monotonic() - started:.0f} s")
    sys.exit(1 if trial.failures or not total else 0)


def judged(arguments, place, directory):
    postern = arguments.postern.resolve(strict=True)
    packages = Packages(HERE, TARGET / "sdks")
    found = recordings.load(place, directory)
    answers = {name: each for name, each in found.items() if arguments.only.lower() in name.lower()}
    with Stage(postern, packages, directory) as stage:
        stage.serve(answers, policy())
        trial = Trial(stage, answers)
        trial.straight()
        trial.kept_alive()
        trial.unchanged(PASSES[0], [])
        trial.unchanged(PASSES[1], [HELD])
        trial.every_other()
        trial.everything_denied()
    return trial


def parse():
    parser = argparse.ArgumentParser(description="Has the official SDKs judge recorded answers that went through the gateway.")
    parser.add_argument("--postern", type=Path, default=TARGET / "debug/postern")
    parser.add_argument("--only", default="", metavar="WORD", help="the recordings alone whose path has this word")
    parser.add_argument("--require", action="store_true", help="fail where the recordings are absent")
    parser.add_argument("--verbose", action="store_true", help="failures in full")
    parser.add_argument("--keep", action="store_true", help="keep the gateway's log and events")
    return parser.parse_args()


main()
