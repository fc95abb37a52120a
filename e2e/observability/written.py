"""What is written about metrics, beside what is scraped."""

import re

from prometheus import CHART
from report import Step

DOCUMENT = CHART.parents[1] / "docs/metrics.md"
ROW = re.compile(r"^\| `((?:postern|process)_\w+)` \|", re.MULTILINE)
SUFFIX = re.compile(r"_(bucket|sum|count)$")
# One that a healthy gateway of this run cannot have.
ABSENT = set()


def steps():
    yield Step("docs/metrics.md is complete", complete)


def complete(stage, step):
    scraped = stage.prometheus.ask("label/__name__/values")
    found = {SUFFIX.sub("", name) for name in scraped if name.startswith("postern_")}
    documented = set(ROW.findall(DOCUMENT.read_text()))
    step.check("every series that is scraped is written about", not found - documented, found - documented)
    absent = {name for name in documented if name not in scraped and name not in found}
    step.check("every series that is written about is scraped", absent == ABSENT, absent)
