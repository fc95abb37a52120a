"""Has the official SDKs judge recorded answers that went through the gateway, with and without denied calls.

python3 e2e/run.py sdks [--postern PATH] [--only WORD]… [--require] [--verbose] [--keep]

The recordings are in the directory that POSTERN_RECORDINGS names. An SDK must reject what it rejects unmodified, and in
the same words, unless the call over which it does was denied; it may reject nothing else. Of routed answers the SDKs of
Messages must accept every one, and read in it what the recording says.
"""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import chat
import recordings
import routed
from packages import TARGET, Packages
from policies import DENIED, HELD, batches, policy
from runner import POSTERN, Suite, executable, run
from stage import PIECES, Stage
from steps import Step
from verdicts import calls, differences, legible, same, stopped, text, without_ids

HERE = Path(__file__).resolve().parent
# Beyond this many bytes an answer is not sent byte by byte.
BYTE_BY_BYTE = 4 << 10
STRAIGHT = "straight"
PASSES = ["observed", "held", "every other call denied", "everything denied"]
# Behind each event the upstream says what the gateway says once a minute while it holds a call.
KEPT_ALIVE = "kept alive"


class Trial:
    """The SDKs' verdicts on the answers, pass by pass; each later pass is compared with the first."""

    def __init__(self, stage):
        self.stage, self.answers = stage, stage.recordings

    def steps(self):
        passes = {
            STRAIGHT: self.straight,
            KEPT_ALIVE: self.kept_alive,
            PASSES[0]: lambda: self.unchanged([]),
            PASSES[1]: lambda: self.unchanged([HELD]),
            PASSES[2]: self.every_other,
            PASSES[3]: self.everything_denied,
        }
        for name, judge in passes.items():
            yield Step(name, partial(self._pass, judge))

    def _pass(self, judge, _stage, step):
        self.step = step
        judge()

    def straight(self):
        """Compares each SDK's verdict without a gateway with the recorded one."""
        judged = self._judge(self.stage.judges(direct=True), self.answers, 0)
        for (language, name), verdict in judged.items():
            expected = self.answers[name].expected.get(language, {"ok": verdict["ok"]})
            shown = {key: value for key, value in expected.items() if key not in ("api", "error")}
            differing = [key for key in shown if verdict.get(key) != shown[key]]
            self._note(language, self.answers[name], [f"{key}: {verdict.get(key)}, not {shown[key]}" for key in differing])
            if not verdict["ok"]:
                self.step.notes.append(f"rejected unmodified: {language} {name}: {verdict['error'].splitlines()[0][:160]}")
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
                self._note(language, streams[name], wrong)

    def unchanged(self, rules):
        """Nothing is denied: SDKs read the same, and the bytes are the same."""
        self.stage.gateway.apply(policy(*rules))
        with ThreadPoolExecutor() as beside:
            raw = beside.submit(lambda: [self._raw(recording) for recording in self.answers.values()])
            after = self._judge(self.judges, self.answers, PASSES.index(self.step.name))
            raw.result()
        self._rejected_alike()
        for (language, name), verdict in self.before.items():
            got = after[language, name]
            if rules and self.answers[name].several:
                self._only_the_first(language, name, after)
                continue
            read = legible(self.answers[name].dialect, verdict)
            if rules and read != calls(self.answers[name].dialect, verdict):
                self._compare(language, name, verdict, (got, read))
            elif not self._gave_up(language, name, got):
                differing = [key for key in verdict if got.get(key) != verdict[key]] if got["ok"] else ["error"]
                wrong = [f"{key}: {got.get(key)}, not {verdict.get(key)}" for key in differing]
                self._note(language, self.answers[name], wrong)

    def _raw(self, recording):
        sent = recording.file.read_bytes()
        if self.step.name == PASSES[1] and (self._is_disputed(recording.name) or self._is_edited(recording) or recording.several):
            return
        held = recording.type == recordings.SSE and self.step.name == PASSES[1]
        differs = lambda piece: not same(sent, self.stage.fetch(recording, piece), held)  # noqa: E731
        pieces = PIECES + ([1] if len(sent) <= BYTE_BY_BYTE else [])
        wrong = [f"other bytes, sent in pieces of {piece}" for piece in pieces if differs(piece)]
        self._note("bytes", recording, wrong)

    def everything_denied(self):
        self.stage.gateway.apply(policy(DENIED))
        after = self._judge(self.judges, self.answers, 3)
        self._rejected_alike()
        for (language, name), verdict in self.before.items():
            if self.answers[name].several:
                self._only_the_first(language, name, after)
            else:
                self._compare(language, name, verdict, (after[language, name], []))

    def _rejected_alike(self):
        """An SDK rejects with the same error the answers that it rejects unmodified, unless the disputed call was replaced."""
        disputed = {name: self.answers[name] for _, name in self.errors}
        after = self._judge(self.judges, disputed, None)
        for (language, name), error in self.errors.items():
            got, recording = after[language, name], self.answers[name]
            is_same = not got["ok"] and got["error"] == error
            if is_same or self.step.name == PASSES[0] or not (self._is_mended(recording, got) or self._is_ended(recording)):
                self._note(language, recording, [] if is_same else [f"{got.get('error', 'accepted')}, not {error}"])

    def _is_ended(self, recording):
        """Whether the gateway ends an answer, and says so; not every SDK hands on why."""
        return b"[postern] Answer stopped" in self.stage.fetch(recording, 0)

    def _is_mended(self, recording, got):
        """Whether an SDK reads what it rejected since a call was denied, the stream got the end that it lacked, or what
        stood behind its end is gone."""
        is_cut = recording.type == recordings.SSE and not recording.file.read_bytes().endswith((b"\n\n", b"\r\n\r\n"))
        return got["ok"] and (is_cut or bool(recording.several) or "[postern]" in text(recording.dialect, got))

    def _only_the_first(self, language, name, after):
        """Of several answers one after the other, the first alone goes on."""
        first = self.answers[name].several
        got = {key: after[language, each] for key, each in (("all", name), ("first", first))}
        wrong = [] if without_ids(got["all"]) == without_ids(got["first"]) else [f"{got['all']}, not {got['first']}"]
        self._note(language, self.answers[name], wrong)

    def every_other(self):
        """One policy for as many recordings as can share it, by what Python reads, or Node where Python reads nothing."""
        known = {}
        for (_, name), verdict in reversed(self.before.items()):
            known[name] = [call for call in calls(self.answers[name].dialect, verdict) if call.is_named()]
        alone = {name: known[name] for name, each in self.answers.items() if known.get(name) and not each.several}
        for batch in batches(alone):
            self.stage.gateway.apply(batch.policy())
            members = {name: self.answers[name] for name in batch.members}
            after = self._judge(self.judges, members, 2)
            for (language, name), got in after.items():
                if (language, name) in self.before:
                    self._compare(language, name, self.before[language, name], (got, self._kept(batch, language, name)))

    def _kept(self, batch, language, name):
        """Returns the calls that this SDK must still return, with ids and inputs as it reads them."""
        mine = calls(self.answers[name].dialect, self.before[language, name])
        gone = [(call.name, call.given) for call in batch.members[name][0] if call not in batch.kept(name)]
        return [call for call in mine if (call.name, call.given) not in gone]

    def _compare(self, language, name, before, outcome):
        after, kept = outcome
        recording = self.answers[name]
        if not self._gave_up(language, name, after):
            self._note(language, recording, differences(recording.dialect, before, after, kept))

    def _gave_up(self, language, name, after):
        """Whether the gateway ended an answer that the SDKs themselves dispute: one of them rejects it unmodified."""
        gave_up = stopped(after) and self._is_disputed(name)
        if gave_up:
            self.step.notes.append(f"stopped, since SDKs dispute it: {language} {name}: {after['error'][:240]}")
        return gave_up

    def _is_edited(self, recording):
        """Whether something in it is left out or denied under any rule."""
        verdict = self.before["python", recording.name]
        read = calls(recording.dialect, verdict)
        return recording.name in recordings.IRREGULAR or legible(recording.dialect, verdict) != read

    def _is_disputed(self, name):
        return any((language, name) not in self.before for language in self.judges)

    def _note(self, judge, recording, wrong):
        kind = f"{recording.dialect}, {'streamed' if recording.stream else 'whole'}"
        self.step.check(f"{judge} accepts {recording.name} ({kind})", not wrong, "; ".join(wrong))

    def _judge(self, judges, answers, turn):
        """Each judge's verdict on each recording; the judges work side by side, and each turn cuts answers otherwise, none
        not at all."""

        def one(language):
            pieces = {name: 0 if turn is None else PIECES[(turn + number) % len(PIECES)] for number, name in enumerate(answers)}
            return {(language, name): judges[language].ask(recording, pieces[name]) for name, recording in answers.items()}

        with ThreadPoolExecutor() as side_by_side:
            return {key: verdict for each in side_by_side.map(one, judges) for key, verdict in each.items()}


def stages(options):
    place = recordings.directory()
    if place is None:
        sys.exit("FAIL  recordings absent" if options.require else print("skipped: recordings absent"))
    packages = Packages(HERE, TARGET / "sdks")
    words = [word.lower() for word in options.only]
    chosen = lambda named: {name: each for name, each in named.items() if not words or any(word in name.lower() for word in words)}  # noqa: E731
    with tempfile.TemporaryDirectory(prefix="postern-recordings-") as directory:
        everything = recordings.load(place, Path(directory))
        answers = chosen(everything)
        yield "the official SDKs", partial(Stage, options.postern, packages, answers, policy()), lambda stage: Trial(stage).steps()
        answers = chat.load(place, everything, Path(directory))
        trial = lambda stage: routed.Routed(stage, chosen(answers), chosen(routed.requests(place)))  # noqa: E731
        make = partial(Stage, options.postern, packages, answers, routed.start())
        yield "the official SDKs of Messages, routed to Chat Completions", make, lambda stage: trial(stage).steps()


run(Suite("sdks", __doc__.splitlines()[0], stages, chooses_steps=False, options={
    "--postern": executable(POSTERN),
    "--require": {"action": "store_true", "help": "fail where the recordings are absent"},
}))
