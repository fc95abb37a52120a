//! What programs do with files and URLs, from words that were divided by hand.

use super::super::division::{
    DividedCommand, Redirection, RedirectionKind, Word, WordForm, WorkingDirectory,
};
use super::{ProgramReading, read};
use crate::call::Kind;

/// A command from words with spaces between them. `$x` is computed, `*` a pattern, `_` in a word is a space; `<` and
/// `>` in front of a word are redirections, `<<<` a here-string.
fn command(line: &str) -> DividedCommand {
    let mut command = DividedCommand {
        words: Vec::new(),
        redirections: Vec::new(),
        directory: WorkingDirectory::Unsaid,
        is_piped: false,
    };
    for written in line.split(' ') {
        let (kind, text) = match written {
            _ if written.starts_with("<<<") => (Some(RedirectionKind::Text), &written[3..]),
            _ if written.starts_with("<>") => (Some(RedirectionKind::ReadWrite), &written[2..]),
            _ if written.starts_with('<') => (Some(RedirectionKind::Read), &written[1..]),
            _ if written.starts_with('>') => (Some(RedirectionKind::Write), &written[1..]),
            _ => (None, written),
        };
        let form = match text {
            _ if text.contains('$') && !text.contains("$0") => WordForm::Computed,
            _ if text.contains('*') || text.starts_with('~') => WordForm::Pattern,
            _ => WordForm::Literal,
        };
        let word = Word { text: text.replace('_', " "), form };
        match kind {
            Some(kind) => command.redirections.push(Redirection { kind, target: word }),
            None => command.words.push(word),
        }
    }
    command
}

/// The facts in one line: `R path`, `W path`, `F url`, `moves`, `opaque`.
fn shown(reading: &ProgramReading) -> String {
    let mut shown = Vec::new();
    for fact in &reading.facts {
        let letter = match fact.kind {
            Kind::Read => "R",
            Kind::Write => "W",
            Kind::Fetch => "F",
            Kind::Shell => "?",
        };
        let targets = fact.paths.iter().chain(&fact.urls).map(AsRef::as_ref).collect::<Vec<_>>();
        shown.push(format!("{letter} {}", targets.join(" ")));
        shown.extend(fact.moves.then(|| "moves".to_owned()));
    }
    shown.extend(reading.is_opaque.then(|| "opaque".to_owned()));
    shown.join("; ")
}

fn check(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .map(|(line, expected)| (line, expected, shown(&read(&command(line)))))
        .filter(|(_, expected, found)| *expected != found)
        .map(|(line, expected, found)| format!("{line}\n  expected: {expected}\n  found:    {found}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn options(line: &str) -> Vec<String> {
    read(&command(line)).command.options
}

#[test]
fn short_options_are_taken_apart() {
    for (line, expected) in [
        ("rm -rf x", "r f"),
        ("rm -fr x", "f r"),
        ("rm -r -f x", "r f"),
        ("rm --recursive --forc x", "recursive force"),
        ("head -n5 x", "n"),
        ("head -20 x", "20"),
        ("kill -9 1", "9"),
        ("sort -oout x", "o"),
        ("unknown -abc=1 --long=x -- -z", "a b c = 1 long"),
        ("find . -name x -delete", "name delete"),
        ("git -C x push --force origin -- -x", "C force"),
        ("git push -f", "f"),
        ("tar xzf a", "x z f"),
        ("openssl x509 -in a -noout", "in noout"),
        ("ssh host rm -rf x", ""),
        ("python x.py --verbose", ""),
        ("docker run -it --rm -v /a:/b image ls -l", "i t rm v"),
        ("aws s3 cp a s3://b/c --recursive --profile x", "recursive profile"),
        ("rm -$x y", ""),
        ("rm -f$x y", "f"),
        ("rm --force=$x y", "force"),
    ] {
        assert_eq!(options(line).join(" "), expected, "{line}");
    }
}

#[test]
fn programs_of_coreutils_read_and_write_their_operands() {
    check(&[
        ("cat /etc/shadow", "R /etc/shadow"),
        ("/bin/cat a - b", "R a b"),
        ("cat -n /dev/null /dev/fd/3", ""),
        ("head -n 5 a", "R a"),
        ("head -n5 a", "R a"),
        ("head -20 a", "R a"),
        ("head --lines=5 -- -a", "R -a"),
        ("tail -f log", "R log"),
        ("sort -o out -k 2 in", "R in; W out"),
        ("sort in -oout", "R in; W out"),
        ("uniq in out", "R in; W out"),
        ("cp a b.txt", "R a; W b.txt"),
        ("cp a/x b", "R a/x; W b b/x"),
        ("cp a b.d c.d/", "R a b.d; W c.d/ c.d/a c.d/b.d"),
        ("cp -r a b.d", "R a; W b.d; moves"),
        ("cp -t /etc a b", "R a b; W /etc /etc/a /etc/b"),
        ("cp --target-dir=/etc a", "R a; W /etc /etc/a"),
        ("mv a b.txt", "R a; W a b.txt; moves"),
        ("ln -s /etc/passwd x.txt", "R /etc/passwd; W x.txt; moves"),
        ("install -m 755 a /usr/bin/b.sh", "R a; W /usr/bin/b.sh"),
        ("install -d a b", "W a b"),
        ("rm -rf build", "W build"),
        ("rm -- -x", "W -x"),
        ("touch -r a b", "R a; W b"),
        ("mkdir -p a/b -m 700", "W a/b"),
        ("tee -a out", "W out"),
        ("chmod +x a", "W a"),
        ("chmod 600 a b", "W a b"),
        ("chmod --reference=a b", "R a; W b"),
        ("chown root:root a", "W a"),
        ("dd if=/dev/zero of=/dev/sda bs=1M", "W /dev/sda"),
        ("truncate -s 0 a", "W a"),
        ("ls", "R ."),
        ("ls -la /etc", "R /etc"),
        ("echo a b", ""),
        ("sha256sum -c sums", "R sums"),
        ("split -l 5 a prefix", "R a"),
    ]);
}

#[test]
fn searching_programs_take_a_pattern_first() {
    check(&[
        ("grep -rn x", "R ."),
        ("grep -rn x src", "R src"),
        ("grep x a b", "R a b"),
        ("grep -e x -e y a", "R a"),
        ("grep -f pats a", "R pats a"),
        ("grep --include=*.rs -r x", "R ."),
        ("grep -A3 x a", "R a"),
        ("rg -n x", "R ."),
        ("rg --files src", "R src"),
        ("rg x -g *.rs src", "R src"),
        ("find . -name *.rs", "R ."),
        ("find -name x", "R ."),
        ("find /a /b ( -name x -o -name y ) -delete", "R /a /b; W /a /b"),
        ("find -L /a -type f -newer ref", "R ref /a"),
        ("find /a -exec rm {} ;", "R /a; W /a"),
        ("find /a -exec cat {} + -fprint out", "R /a; W out"),
        ("fd x src", "R src"),
        ("sed -n 1,5p a", "R a"),
        ("sed -i s/a/b/ a", "R a; W a"),
        ("sed -i  s/a/b/ a", "R a; W a"),
        ("sed -i.bak -e s/a/b/ a", "R a; W a"),
        ("sed -e w_out a", "R a; W out"),
        ("sed s/a/b/w_out", "W out"),
        ("sed 1e_date a", "R a; opaque"),
        ("sed -f script a", "R script a"),
        ("awk {print} a b", "R a b"),
        ("awk -F: -v x=1 {print$0} a", "R a"),
        ("awk {print>\"x\"} a", "R a; opaque"),
        ("awk {system(\"x\")} a", "R a; opaque"),
        ("jq -r .a f.json", "R f.json"),
        ("jq --slurpfile x y.json -n .", "R y.json"),
        ("yq -i .a=1 f.yaml", "R f.yaml; W f.yaml"),
        ("perl -pi -e s/a/b/ f", "R f; W f; opaque"),
        ("perl -ne print f", "R f; opaque"),
        ("perl f.pl x", "R f.pl"),
    ]);
}

#[test]
fn verbs_of_git_have_operands_of_their_own() {
    check(&[
        ("git status", ""),
        ("git clone https://example.com/a/b.git", "W b; moves; F https://example.com/a/b.git"),
        ("git clone --depth 1 git@example.com:a/b.git dir", "W dir; moves; F ssh://example.com/a/b.git"),
        ("git -C /x clone https://example.com/b", "W /x/b; moves; F https://example.com/b"),
        ("git fetch origin main", ""),
        ("git push https://example.com/b HEAD:main", "F https://example.com/b"),
        ("git pull ssh://git@example.com/b", "F ssh://example.com/b"),
        ("git add .env src", "R .env src"),
        ("git -C /x rm a", "W /x/a"),
        ("git rm --cached a", "R a"),
        ("git mv a b.txt", "R a; W a b.txt; moves"),
        ("git show HEAD:a", ""),
        ("git diff HEAD -- a", "R a"),
        ("git diff --no-index /dev/null /etc/shadow", "R /etc/shadow"),
        ("git checkout main", ""),
        ("git checkout HEAD -- a b", "W a b"),
        ("git restore a", "W a"),
        ("git apply x.patch", "R x.patch; W ."),
        ("git archive -o out.tar HEAD", "W out.tar"),
        ("git worktree add ../x main", "W ../x"),
        ("git commit -F msg", "R msg"),
        ("git commit -m x", ""),
        ("git -c core.pager=less log", "opaque"),
        ("git -c user.name=x commit -m y", ""),
        ("git $x", "opaque"),
    ]);
}
