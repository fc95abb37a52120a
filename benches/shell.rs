//! Shell commands that are read, by their length, beside a call whose commands no rule asks for: compare the rows of
//! one run.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use postern::call::{Input, ShellTerms};
use postern::provider::kind::shell::division::{WorkingDirectory, divide};
use postern::provider::kind::{Offered, ReadCall, read_commands};
use serde_json::{Value, json};

/// That of the gateway: most of what a reading costs is words and paths that are made.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [256, 4 << 10, 64 << 10];

fn main() {
    divan::main();
}

/// What agents write, without a pause, 25 commands in a KiB: tests behind a `cd`, files that are searched, and a script in a here-document.
const COMMANDS: &str = r#"cd /workspace/postern && cargo test --workspace --all-features 2>&1 | tail -n 40
grep -rn "fn divide" src/ --include='*.rs' | head -20; sed -n '1,80p' src/lib.rs
if [ -f "$HOME/.cargo/env" ]; then . "$HOME/.cargo/env"; fi; for f in src/*.rs; do wc -l "$f"; done
cat > notes.md <<'END'
The reader goes over the text once; it keeps what a rule could ask for, and nothing of what it could not.
Words are unquoted, wrappers are taken off, and a bound that is reached makes the division opaque.
END
git add -A && git commit -q -m "$(date +%F): words 'quoted' and \"nested\"" && curl -fsS https://example.com/a -o /tmp/a
"#;

/// A text of about this many bytes, whose here-document takes what the commands before leave of a long one.
fn text(size: usize) -> String {
    let commands = COMMANDS.repeat(size.min(4 << 10).div_ceil(COMMANDS.len()));
    let head: String = commands.chars().take(size.min(4 << 10)).collect();
    let last = head.rfind("cd /workspace").unwrap_or_default();
    if size <= 4 << 10 && last == 0 {
        return head;
    }
    let mut text = head.get(..last).unwrap_or_default().to_owned();
    text.push_str("cat > long.txt <<'END'\n");
    while text.len() + 100 < size {
        text.push_str(
            "A line of a file that is written by a here-document, as agents without file tools do.\n",
        );
    }
    text.push_str("END\n");
    text
}

/// A file of this length that is written and run, as agents without file tools do: few commands, one long text.
fn script(size: usize) -> String {
    let mut text = "cd /workspace/postern && mkdir -p tools && cat > tools/report.py <<'EOF'\n".to_owned();
    while text.len() + 100 < size {
        text.push_str("    for name, rows in sorted(tables.items()): print(f\"{name}: {len(rows)} rows\")\n");
    }
    text.push_str("EOF\npython3 tools/report.py --all 2>&1 | tail -n 20\n");
    text
}

/// As many commands as there may be, of so many words that they have this length.
fn dense(size: usize) -> String {
    let count = (size / 24).min(250);
    let command = format!("rm -rf {}; ", "build/out/a ".repeat((size / count).saturating_sub(9) / 12));
    command.repeat(count)
}

fn read<'a>(input: &'a Value, terms: &ShellTerms) -> ReadCall<'a> {
    read_commands(("Bash", None), Input::Json(input), &Offered::default(), terms, &[])
}

fn read_text(bencher: Bencher<'_, '_>, text: &str, reads: bool) {
    let input = json!({"command": text, "description": "runs the tests"});
    let terms = ShellTerms { reads, ..ShellTerms::default() };
    assert_eq!(read(&input, &terms).facts.expect("a shell call").len(), 1, "a call of one kind");
    bencher.counter(BytesCount::new(text.len())).bench_local(|| read(black_box(&input), &terms));
}

/// The commands are not asked for, as where no policy selects the pod.
#[divan::bench(args = SIZES)]
fn baseline_unread(bencher: Bencher<'_, '_>, size: usize) {
    read_text(bencher, &text(size), false);
}

#[divan::bench(args = SIZES)]
fn divided(bencher: Bencher<'_, '_>, size: usize) {
    let text = text(size);
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| divide(black_box(&text), &WorkingDirectory::Unsaid));
}

#[divan::bench(args = SIZES)]
fn read_whole(bencher: Bencher<'_, '_>, size: usize) {
    read_text(bencher, &text(size), true);
}

#[divan::bench(args = SIZES)]
fn read_script(bencher: Bencher<'_, '_>, size: usize) {
    read_text(bencher, &script(size), true);
}

#[divan::bench(args = SIZES)]
fn read_dense(bencher: Bencher<'_, '_>, size: usize) {
    read_text(bencher, &dense(size), true);
}

/// How a text begins, and what it repeats: each meets a bound, or makes a reader that goes over a part twice slow.
const HOSTILE: [(&str, &str); 28] = [
    ("", "a"),
    ("", "é"),
    ("", "a "),
    ("", "$("),
    ("", "$a"),
    ("a", "$IFS"),
    ("", "${a:-b}"),
    ("", "`a`"),
    ("$((", "(1+"),
    ("$'", r"\x41"),
    ("", "''\"\""),
    ("", "{a,b}"),
    ("{", "a,"),
    ("", "*,"),
    ("", "{}"),
    ("", "{,"),
    ("a[", "x "),
    ("a", "["),
    ("a", "\\\n"),
    ("", "<<a "),
    ("cat <<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "aaaaaaaaaaaaaaa\\\n"),
    ("", "cd a/b/c;"),
    ("", "case a in a) b;; esac;"),
    ("sudo -", "E"),
    ("", "sudo -E "),
    ("find ", "-exec find "),
    ("find ", "-exec rm {} + "),
    ("sed -n ", "p;"),
];

#[divan::bench(args = HOSTILE)]
fn read_hostile(bencher: Bencher<'_, '_>, (first, repeated): (&str, &str)) {
    let count = (64 << 10) / repeated.len() - first.len();
    read_text(bencher, &[first, &repeated.repeat(count)].concat(), true);
}
