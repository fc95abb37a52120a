"""Looks at `postern ui` in a real Chromium: live events, 100,000 of them, hostile names, keys, themes, zoom, other sites.

python3 e2e/run.py ui [--postern PATH] [--only WORD]… [--verbose] [--keep]

Wants Debian's chromium-headless-shell or chromium. A screenshot of every view is left in target/e2e-ui/pictures, to be
looked at.
"""

import shutil
import sys
from contextlib import contextmanager
from functools import partial

import events
from packages import TARGET, Packages
from pages import BROWSERS, EVIL, Browser, Server, address, settles, shows, website
from runner import POSTERN, ROOT, Suite, executable, run
from steps import Step

HERE = ROOT / "e2e/ui"
ASSETS = ROOT / "src/page/assets"
CACHE = TARGET / "e2e-ui"
VENDORED = {"vendor/uplot-1.6.32.min.js": "dist/uPlot.iife.min.js", "vendor/uplot-1.6.32.min.css": "dist/uPlot.min.css", "vendor/uplot-LICENSE": "LICENSE"}
MANY = 100_000
# The least contrast of text by WCAG 2.2, level AA.
CONTRAST = 4.5


class Stage:
    """A browser, and the servers of one directory."""

    def __init__(self, postern, directory, packages, browser):
        self.postern, self.directory, self.packages, self.browser = postern, directory, packages, browser
        self.week = events.week()

    def serve(self, name, told):
        ledger = self.directory / f"{name}.jsonl"
        ledger.write_text(events.lines(told))
        return Server(self.postern, ledger)


def vendored(stage, step):
    for own, theirs in VENDORED.items():
        same = (ASSETS / own).read_bytes() == (stage.packages.modules / "uplot" / theirs).read_bytes()
        step.check(f"{own} is {theirs} of npm's uplot", same)


def views(stage, step):
    """What a person sees first, and in each view; nothing is loaded from elsewhere, and nothing fails."""
    with stage.serve("week", stage.week) as server, stage.browser.window(server.url) as page:
        shows(page, len(stage.week))
        stage.browser.picture(page, "sessions")
        labels = {event["session"] for event in stage.week if "session" in event}
        denied = sum(event["count"] for event in stage.week if event["decision"]["verdict"] == "Deny")
        tiles = dict(zip(page.locator("#tiles dt").all_inner_texts(), page.locator("#tiles dd").all_inner_texts(), strict=True))
        step.check("sessions are counted", tiles["Sessions"].split("\n")[0] == str(len(labels)), tiles)
        step.check("denials are counted", tiles["Denied"].split("\n")[0] == str(denied), tiles)
        for panel, words in (("rules", "no-sudo"), ("models", "claude-opus-5"), ("hosts", "paste.example.org"), ("tools", "Bash")):
            step.check(f"the panel of {panel} has {words}", words in page.locator(f"#{panel}").inner_text(), page.locator(f"#{panel}").inner_text())
        step.check("the charts are drawn", page.locator("canvas").count() == 2)
        page.locator("#tabs a", has_text="Events").click()
        settles(page, lambda: page.locator(".grid.events .row").count() > 5)
        stage.browser.picture(page, "events")
        page.keyboard.press("d")
        page.locator('.row .verdict[data-verdict="Deny"]').first.click()
        page.locator("#detail .why").wait_for()
        stage.browser.picture(page, "event")
        shown = page.locator("#detail").inner_text()
        step.check("an event has its reason and the way to more", "postern policy explain" in shown and "Reason" in shown, shown)
        own = [url for url in page.asked if not url.startswith(server.url)]
        step.check("nothing is loaded from elsewhere", not own and len(page.asked) > 10, own)
        step.check("nothing fails in the page", not page.said, page.said)


def addresses(stage, step):
    """Filters stand in the address bar; a session and an event are links."""
    with stage.serve("week", stage.week) as server, stage.browser.window(server.url) as page:
        shows(page, len(stage.week))
        page.locator("#rules button", has_text="no-sudo").click()
        settles(page, lambda: "rule=" in address(page))
        step.check("a filter is in the address", "no-sudo" in address(page), address(page))
        page.reload()
        shows(page, len(stage.week))
        step.check("and holds after it is loaded again", "no-sudo" in page.locator("#chips").inner_text(), page.locator("#chips").inner_text())
        page.go_back()
        step.check("back takes it away", settles(page, lambda: page.locator(".chip").count() == 0))
        name = page.locator(".row .name").first
        label, link = name.inner_text(), name.get_attribute("href")
        count = sum(1 for event in stage.week if event.get("session") == label)
        with stage.browser.window(server.url, link) as other:
            shows(other, len(stage.week))
            step.check("a session is a link to its events", other.locator("#tabs [aria-selected=true] .count").inner_text() == str(count), (label, count))
            stage.browser.picture(other, "session")
        denied = next(event for event in stage.week if event["decision"]["verdict"] == "Deny")
        with stage.browser.window(server.url, f"#event={denied['id']}") as other:
            other.locator("#detail .fields").wait_for()
            step.check("an event is a link", denied["id"] in other.locator("#detail .fields").inner_text())
        with stage.browser.window(server.url, "#event=01a2008d-0000-7000-8000-999999999999") as other:
            other.locator("#detail h2").wait_for()
            step.check("one that is not there is said to be", "No such event" in other.locator("#detail").inner_text())


def live(stage, step):
    """Events are there as they come, and what is looked at stays in its place."""
    with stage.serve("live", []) as server, stage.browser.window(server.url) as page:
        page.locator(".empty:not([hidden])").wait_for()
        stage.browser.picture(page, "empty")
        step.check("it says that it waits", "No event yet" in page.locator(".empty").inner_text())
        server.add(events.lines(stage.week[:300]))
        shows(page, 300)
        page.keyboard.press("2")
        page.locator(".grid.events").wait_for()
        page.evaluate("document.getElementById('grid').scrollTop = 1000")
        seen = lambda: page.evaluate(IN_SIGHT)
        before = seen()
        server.add(events.lines(stage.week[300:450]))
        shows(page, 450)
        step.check("new events do not move what is looked at", seen() == before, (before, seen()))
        step.check("the source is live", "live" in page.locator("#source").inner_text())
    with Server(stage.postern, "-") as server, stage.browser.window(server.url) as page:
        server.process.stdin.write(events.lines(stage.week[:20]))
        server.process.stdin.flush()
        shows(page, 20)
        server.process.stdin.close()
        server.process.stdin = None
        step.check("standard input ends", settles(page, lambda: "ended" in page.locator("#source").inner_text()))
        server.process.kill()
        step.check("a server that is gone is said to be", settles(page, lambda: "has ended" in page.locator("#notice").inner_text()))


# The row that is 100 pixels below the upper end of the list, once it is drawn.
IN_SIGHT = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
  const top = document.getElementById('grid').getBoundingClientRect().top + 100;
  done([...document.querySelectorAll('.row:not(.head)')].find(row => row.getBoundingClientRect().top <= top && top < row.getBoundingClientRect().bottom)?.innerText); })))"""


def many(stage, step):
    """100,000 events: rows in sight alone are elements, and the page is painted before they are all there."""
    told = events.many(MANY)
    with stage.serve("many", told) as server:
        with stage.browser.window(server.url) as page:
            shows(page, MANY)
        with stage.browser.window(server.url, "#view=events") as page:
            painted = page.evaluate("new Promise(done => new PerformanceObserver(list => done(list.getEntriesByName('first-contentful-paint')[0]?.startTime)).observe({type: 'paint', buffered: true}))")
            shows(page, MANY)
            ready = page.evaluate("performance.now()")
            step.check("it is painted before all events are there", painted < ready, (painted, ready))
            counted = page.locator("#tabs [aria-selected=true] .count").inner_text()
            step.check("all of them are listed", counted == f"{MANY:,}", counted)
            frames = page.evaluate(SCROLL)
            rows = page.locator(".grid .row").count()
            step.check("rows in sight alone are elements", rows < 100, rows)
            oldest = page.locator(f".row[data-at='{MANY - 1}']").count()
            step.check("the oldest one is at the end", oldest == 1, oldest)
            stage.browser.picture(page, "many")
            filtered = page.evaluate(FILTER)
            step.check("a filter over all of them leaves some", filtered["count"] not in ("0", f"{MANY:,}"), filtered)
            figures = f"first paint {painted:.0f} ms, all {MANY:,} events {ready:.0f} ms, frames while scrolling: median {frames['median']:.0f} ms, longest {frames['longest']:.0f} ms; a filter {filtered['time']:.0f} ms"
            step.notes.append(figures)


# Scrolls to the end in 100 frames, and says how long frames took.
SCROLL = """new Promise(done => {
  const grid = document.getElementById('grid'), times = []; let last = performance.now(), left = 100;
  const turn = () => { const now = performance.now(); times.push(now - last); last = now;
    grid.scrollTop += grid.scrollHeight / 100;
    if (left-- > 0) return requestAnimationFrame(turn);
    times.sort((a, b) => a - b); done({median: times[50], longest: times.at(-1)}); };
  requestAnimationFrame(turn); })"""
FILTER = """new Promise(done => {
  const input = document.getElementById('search'), start = performance.now();
  input.value = 'private-keys'; input.dispatchEvent(new Event('input'));
  requestAnimationFrame(() => requestAnimationFrame(() => done({time: performance.now() - start, count: document.querySelector('#tabs [aria-selected=true] .count').textContent}))); })"""


def hostile(stage, step):
    """Whatever names say, they are text, are seen, and have their place."""
    told = stage.week[:50] + list(events.hostile())
    with stage.serve("hostile", told) as server, stage.browser.window(server.url) as page:
        shows(page, len(told))
        markup = events.HOSTILE["markup"]
        for view in ("1", "2"):
            page.keyboard.press(view)
            page.locator(f".grid.{'sessions' if view == '1' else 'events'}").wait_for()
            stage.browser.picture(page, f"hostile-{view}")
            step.check("no markup came of a name", page.locator("main script, main img, main iframe").count() == 0)
            wide = page.evaluate("[document.documentElement.scrollWidth - innerWidth, document.getElementById('aside').scrollWidth - document.getElementById('aside').clientWidth]")
            step.check("nothing is pushed out of the window", max(wide) <= 0, wide)
            text = page.locator("main").inner_text()
            step.check("names are shown as they are", "<script>document.title" in text, text[:300])
            step.check("what turns a line around is seen", "\\u{202e}" in text and "\u202e" not in text and "\u001b" not in text)
        page.keyboard.press("1")
        page.locator(".row .name", has_text="<script>").first.click()
        page.locator(".grid.events .row .time").first.click()
        page.locator("#detail .fields").wait_for()
        step.check("a hostile session and event open", markup in page.locator("#detail").inner_text())
        stage.browser.picture(page, "hostile-event")
        step.check("no script of a name ran", page.title() == "Postern", page.title())
        page.reload()
        shows(page, len(told))
        step.check("nor by the address", page.title() == "Postern" and not page.said, page.said)


def keys(stage, step):
    with stage.serve("week", stage.week) as server, stage.browser.window(server.url) as page:
        shows(page, len(stage.week))
        press = page.keyboard.press
        press("j")
        press("j")
        step.check("j chooses the next row", page.locator(".row[aria-selected=true]").get_attribute("data-at") == "1")
        press("Enter")
        step.check("Enter opens a session", settles(page, lambda: "session=" in address(page)), address(page))
        page.locator(".grid.events .row .time").first.wait_for()
        press("ArrowDown")
        press("Enter")
        page.locator("#detail .fields").wait_for()
        press("Escape")
        step.check("Esc closes the event", settles(page, lambda: not page.locator("#detail").is_visible()))
        press("Escape")
        step.check("and then the session", settles(page, lambda: "session=" not in address(page)), address(page))
        press("/")
        page.keyboard.type("sudo")
        step.check("/ filters by text", settles(page, lambda: "q=sudo" in address(page)), address(page))
        press("Escape")
        press("x")
        step.check("x clears", settles(page, lambda: "q=" not in address(page)), address(page))
        press("?")
        step.check("? shows the keys", page.locator("#help").is_visible())
        stage.browser.picture(page, "keys")
        press("Escape")
        reached = set()
        for _ in range(60):
            press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.closest('[id]')?.id"))
        step.check("Tab reaches every part", {"search", "theme", "keys", "verdicts", "tabs", "grid", "rules", "hosts"} <= reached, reached)


def themes(stage, step):
    """Light and dark by the system and by the button; text has enough contrast in both."""
    with stage.serve("week", stage.week) as server:
        for theme in ("light", "dark"):
            with stage.browser.window(server.url, "#view=events&verdict=Deny,WouldDeny,Audit", color_scheme=theme) as page:
                shows(page, len(stage.week))
                faint = page.evaluate(FAINT, CONTRAST)
                step.check(f"text has a contrast of {CONTRAST} in {theme}", not faint, faint)
                stage.browser.picture(page, f"theme-{theme}")
                before = page.evaluate("getComputedStyle(document.body).backgroundColor")
                page.locator("#theme").click()
                step.check("the button changes it", settles(page, lambda: page.evaluate("getComputedStyle(document.body).backgroundColor") != before))


# Texts whose contrast with what is behind them is less than it should be.
FAINT = """least => {
  const rgb = colour => { const parts = colour.match(/[\\d.]+/g).map(Number); return parts.length > 3 && parts[3] === 0 ? null : parts.slice(0, 3); };
  const light = ([r, g, b]) => { const [R, G, B] = [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * R + 0.7152 * G + 0.0722 * B; };
  const behind = element => { for (let at = element; at; at = at.parentElement) { const colour = rgb(getComputedStyle(at).backgroundColor); if (colour) return colour; } return [255, 255, 255]; };
  const found = new Set();
  for (const element of document.querySelectorAll('body *')) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()) || !element.checkVisibility()) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) found.add(`${element.className || element.tagName}: ${ratio.toFixed(2)} ${element.textContent.slice(0, 30)}`);
  }
  return [...found]; }"""


def zoom(stage, step):
    """At 200 % a window of 1280 by 800 has 640 by 400: everything is there, and nothing is beside the window."""
    size = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
    with stage.serve("week", stage.week) as server, stage.browser.window(server.url, **size) as page:
        shows(page, len(stage.week))
        stage.browser.picture(page, "zoom")
        for view in ("1", "2"):
            page.keyboard.press(view)
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            step.check("nothing is beside the window", wide <= 0, wide)
        page.locator(".row .what").first.scroll_into_view_if_needed()
        stage.browser.picture(page, "zoom-events")
        page.locator(".row .time").first.click()
        page.locator("#detail .fields").wait_for()
        box = page.locator("#detail").bounding_box()
        step.check("an event covers the window", box["width"] >= 640 and box["height"] >= 400, box)
        stage.browser.picture(page, "zoom-event")
        page.keyboard.press("Escape")
        page.locator("#tools").scroll_into_view_if_needed()
        step.check("the summary is below", page.locator("#tools button").first.is_visible())


# What a web page tries, which knows the address; `document.title` says what it read.
ATTACK = """<!doctype html><title>nothing</title><script>
const read = text => { if (/Bash|Postern|agents/.test(text)) document.title = 'stolen ' + text.slice(0, 40); };
const url = '%s';
(async () => {
  for (const mode of ['cors', 'no-cors', 'same-origin']) for (const path of ['', 'events?from=0&change=0', 'app.js'])
    try { read(await (await fetch(url + path, {mode, credentials: 'include'})).text()); } catch {}
  for (const tag of ['iframe', 'script', 'img', 'object', 'embed']) await new Promise(done => {
    const element = document.createElement(tag); element.onload = element.onerror = done; setTimeout(done, 1500);
    element[tag === 'object' ? 'data' : 'src'] = url + (tag === 'script' ? 'app.js' : ''); document.body.append(element);
    if (tag === 'script') element.addEventListener('load', () => { document.title = 'stolen script'; });
    if (tag === 'iframe') element.addEventListener('load', () => { try { read(element.contentDocument.documentElement.innerText); } catch {} }); });
  document.body.dataset.tried = 'all';
})();
</script><body>"""


def elsewhere(stage, step):
    """A web page that knows the address, one that rebinds its own name to the loopback, and the twin: the page itself."""
    with stage.serve("week", stage.week) as server:
        port = server.url.split(":")[2].split("/")[0]
        token = server.url.rstrip("/").rsplit("/", 1)[1]
        with website(ATTACK % server.url) as site:
            for host in (f"http://127.0.0.1:{site}/", f"http://{EVIL}:{site}/"):
                with stage.browser.window(host) as page:
                    page.locator("body[data-tried=all]").wait_for()
                    step.check(f"a web page at {host.split(':')[1]} reads nothing", page.title() == "nothing", page.title())
        with stage.browser.window(f"http://{EVIL}:{port}/{token}/") as page:
            text = page.locator("body").inner_text()
            step.check("a rebound name finds no page", "127.0.0.1 or localhost alone" in text and page.title() != "Postern", text)
            tried = page.evaluate("fetch('events?from=0&change=0').then(answer => answer.status)")
            step.check("and no events", tried == 421, tried)
        with stage.browser.window(f"http://localhost:{port}/{token}/") as page:
            shows(page, len(stage.week))
            step.check("by its own name the page is there", page.title() == "Postern" and not page.said, page.said)


def steps(_stage):
    for name, examine in {
        "the vendored files are those of npm": vendored,
        "every view, from this machine alone": views,
        "filters, sessions and events are addresses": addresses,
        "live events": live,
        f"{MANY:,} events": many,
        "hostile names are text": hostile,
        "keys": keys,
        "light and dark": themes,
        "zoom to 200 %": zoom,
        "J19: other sites read nothing": elsewhere,
    }.items():
        yield Step(name, partial(guarded, examine))


def guarded(examine, stage, step):
    """What a browser cannot do fails the step, as what any other program cannot do."""
    from playwright.sync_api import Error

    try:
        examine(stage, step)
    except Error as error:
        raise RuntimeError(str(error)) from error


@contextmanager
def browsing(options, directory):
    packages = Packages(HERE, CACHE)
    sys.path.append(str(packages.site))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = Browser(playwright, CACHE / "pictures")
        yield Stage(options.postern, directory, packages, browser)
        browser.chromium.close()


def stages(options):
    if not any(map(shutil.which, BROWSERS)):
        sys.exit("a browser is missing: install chromium-headless-shell or chromium")
    yield "the page in a browser", partial(browsing, options), steps


if __name__ == "__main__":
    run(Suite("ui", __doc__.splitlines()[0], stages, {}, {"--postern": executable(POSTERN)}))
