"""Writes the table of values into the chart's README.md, from the comments of its values.yaml.

python3 scripts/chart_readme.py [--check]    # with --check: exit status 1 where the table is not what it would write
"""

import re
import sys
from pathlib import Path

CHART = Path(__file__).parents[1] / "charts" / "postern"
MARK = "<!-- From values.yaml, by scripts/chart_readme.py. -->\n"
KEY = re.compile(r"^( *)([A-Za-z0-9]+):(?: (.*))?$")


def main():
    readme = CHART / "README.md"
    text = readme.read_text()
    written = text.split(MARK)[0] + MARK + "\n" + table((CHART / "values.yaml").read_text())
    if "--check" not in sys.argv[1:]:
        readme.write_text(written)
    elif written != text:
        print("charts/postern/README.md is not what values.yaml says: run `just generate`", file=sys.stderr)
        return 1
    return 0


def table(values):
    """A row for every value that is no mere map of others; what a map is for stands above its values in bold."""
    rows = ["| value | default | |\n", "|---|---|---|\n"]
    for path, default, comment in entries(values):
        name = f"`{path}`" if default is not None else f"**`{path}`**"
        shown = f"`{default}`".replace("|", "\\|") if default is not None else ""
        rows.append(f"| {name} | {shown} | {comment} |\n")
    return "".join(rows)


def entries(values):
    """Path, default (None for a map of others) and comment of every key; a key without a comment is an error."""
    path, comment = [], []
    for number, line in enumerate(values.splitlines(), 1):
        key = KEY.match(line)
        if line.lstrip().startswith("#"):
            comment.append(line.strip().removeprefix("#").strip())
        elif key:
            indent, name, default = len(key[1]) // 2, key[2], key[3]
            if not comment:
                raise SystemExit(f"values.yaml:{number}: {name} has no comment; say in a line above it what it is for")
            path = [*path[:indent], name]
            yield ".".join(path), default, " ".join(comment)
            comment = []
        elif line.strip():
            raise SystemExit(
                f"values.yaml:{number}: neither a comment nor a key on one line: write lists and maps as [] and {{}}"
            )
        else:
            comment = []


if __name__ == "__main__":
    sys.exit(main())
