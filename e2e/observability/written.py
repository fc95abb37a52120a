"""Compares the documented metrics with the scraped ones."""

import re

from prometheus import CHART
from steps import Step

DOCUMENTS = [CHART.parents[1] / "docs" / name for name in ("metrics.md", "operating.md")]
ROW = re.compile(r"^\| `((?:postern|process)_\w+)` \|", re.MULTILINE)
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def steps():
    yield Step("the documents are complete", complete)


def complete(stage, step):
    scraped = stage.prometheus.ask("label/__name__/values")
    matches = {SUFFIX.sub("", name) for name in scraped if name.startswith("postern_")}
    documented = {name for document in DOCUMENTS for name in ROW.findall(document.read_text())}
    step.check("every series that is scraped is written about", not matches - documented, matches - documented)
    absent = documented - matches - set(scraped)
    step.check("every series that is written about is scraped", not absent, absent)
