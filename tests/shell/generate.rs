//! Makes texts of shell commands, the same ones from the same seed.

/// A generator of numbers (xorshift64*).
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % most
    }

    pub(super) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// A list of commands of which each runs once, if every program succeeds.
pub(super) fn script(chance: &mut Chance) -> String {
    let mut script = Script { chance, documents: Vec::new(), places: 0, substitutions: 0 };
    let depth = script.chance.below(3);
    let list = script.list(depth);
    let rest = script.line_end();
    format!("{list}{rest}")
}

struct Script<'a> {
    chance: &'a mut Chance,
    /// Here-documents that begin behind the line.
    documents: Vec<String>,
    /// How many directories were entered.
    places: usize,
    /// Substitutions around what is made: bash 5.2 loses here-documents in the conditions of those.
    substitutions: usize,
}

impl Script<'_> {
    fn list(&mut self, depth: usize) -> String {
        let mut list = self.chain(depth);
        for _ in 0..self.chance.below(3) {
            let sign = match self.chance.below(5) {
                0 | 1 => "; ".to_owned(),
                2 => format!("& wait{}", self.line_end()),
                _ => self.line_end(),
            };
            list = format!("{list}{sign}{}", self.chain(depth));
        }
        list
    }

    /// The end of a line, with the here-documents that stand behind it.
    fn line_end(&mut self) -> String {
        let comment = self.chance.one(&["", "", "", "", "", " # it's \"$(p0)"]);
        format!("{comment}\n{}", self.documents.drain(..).collect::<String>())
    }

    fn chain(&mut self, depth: usize) -> String {
        let first = self.pipeline(depth);
        match self.chance.below(6) {
            0 => format!("{first}&&{}", self.pipeline(depth)),
            1 => format!("! {first} || {}", self.pipeline(depth)),
            2 => format!("{first} && \\\n  {}", self.pipeline(depth)),
            _ => first,
        }
    }

    fn pipeline(&mut self, depth: usize) -> String {
        let first = self.command(depth);
        match self.chance.below(5) {
            0 => format!("{first}|{}", self.command(depth)),
            1 => format!("{first} |& {}", self.command(depth)),
            _ => first,
        }
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple(0);
        }
        let inner = depth - 1;
        match self.chance.below(16) {
            0 => format!("({})", self.closed(inner)),
            1 => format!("{{ {}; }}", self.closed(inner)),
            2 => format!("if {}; then {}; fi", self.closed(inner), self.closed(inner)),
            3 => format!("for x in 1; do {}; done", self.closed(inner)),
            4 => format!("case a in b) :;; (a|c) {};; esac", self.closed(inner)),
            5 => format!("{{ {}\n}} >{}", self.closed(inner), self.file()),
            6 => format!(
                "{} {}",
                self.chance.one(&["eval", "bash -c", "bash -ec", "env bash -c"]),
                quoted(&self.substituted(inner))
            ),
            7 => format!(
                "if ! {}; then :; elif {}; then {}; else :; fi",
                self.simple(inner),
                self.simple(inner),
                self.closed(inner)
            ),
            8 => format!(
                "{{ [[ a == a && ( b == {} || a == a ) ]] && {}; }}",
                self.word(inner),
                self.simple(inner)
            ),
            9 if self.places < 3 => {
                self.places += 1;
                let words = ["cd d0", "cd 'd1'", "cd ./d0", "pushd d1", "cd -- \"d0\"", "command cd d1"];
                self.chance.one(&words).to_owned()
            }
            _ => self.simple(depth),
        }
    }

    /// A list with its here-documents inside.
    fn closed(&mut self, depth: usize) -> String {
        let outer = std::mem::take(&mut self.documents);
        let list = self.list(depth);
        let end = if self.documents.is_empty() { String::new() } else { self.line_end() + ":" };
        self.documents = outer;
        // Where the line goes on, the here-documents that began before stand behind its first break.
        if self.documents.is_empty() { format!("{list}{end}") } else { ":".to_owned() }
    }

    fn substituted(&mut self, depth: usize) -> String {
        self.substitutions += 1;
        let list = self.closed(depth);
        self.substitutions -= 1;
        list
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut command = String::new();
        for _ in 0..self.chance.below(8) / 6 {
            command += self.chance.one(&["A=1 ", "B='x y' ", "C= ", "D+=a\\ b "]);
        }
        let wrappers = [
            "command ",
            "env ",
            "env E='1 2' ",
            "env -u A -- ",
            "nice ",
            "nice -n5 ",
            "timeout -k 9 60 ",
            "nohup ",
        ];
        match self.chance.below(12) {
            0 if command.is_empty() => command += "time ",
            1 | 2 => command += self.chance.one(&wrappers),
            3 => command += "find . -maxdepth 0 -exec ",
            _ => {}
        }
        let is_found = command.ends_with("-exec ");
        let number = self.chance.below(8);
        command += &match self.chance.below(6) {
            0 => format!("'p'{number}"),
            1 => format!("\"p{number}\""),
            2 => format!("\\p\\\n{number}"),
            3 => format!("$'\\x70{number}'"),
            4 => format!("{{p{number},b}}"),
            _ => format!("p{number}"),
        };
        for _ in 0..self.chance.below(4) {
            let blank = self.chance.one(&[" ", "  ", "\t", " \\\n "]);
            command += blank;
            // A word `;` would end the command of `find`.
            command += if is_found { "z" } else { "" };
            command += &self.word(depth);
        }
        if is_found {
            command += " \\;";
        }
        if self.chance.below(4) == 0 {
            command += &self.redirection();
        }
        command
    }

    fn redirection(&mut self) -> String {
        match self.chance.below(9) {
            0 => format!(">{}", self.file()),
            1 => format!(" 2>> {}", self.file()),
            2 => format!(" &>{}", self.file()),
            3 => format!(" 2>&1 >|{}", self.file()),
            4 => " </dev/null 2>&1".to_owned(),
            5 => format!(" <<<{}", self.word(0)),
            6 => format!(" {{fd}}>{} ", self.file()),
            7 if self.substitutions == 0 => {
                let lines = self.chance.one(&["", "a 'b\n", "p7 \\$(p7)\n", "EO\n", "\\\\\n"]);
                let (sign, end) = match self.chance.below(3) {
                    0 => ("<<EOF", "EOF"),
                    1 => ("<<'E F'", "E F"),
                    _ => ("<<-\\EOF", "\t\tEOF"),
                };
                self.documents.push(format!("{lines}{end}\n"));
                format!(" {sign}")
            }
            _ => format!(" >&{}", self.file()),
        }
    }

    fn file(&mut self) -> String {
        let number = self.chance.below(4);
        self.chance.one(&["f", "'f'", "\"f\"", "\\f", "f\\\n"]).to_owned() + &number.to_string()
    }

    fn word(&mut self, depth: usize) -> String {
        (0..=self.chance.below(3)).map(|_| self.part(depth)).collect()
    }

    fn part(&mut self, depth: usize) -> String {
        let plain = ["a", "-rf", "x.y", "/etc", "=", "b=c", "%", "@", ":", "é", "0", "x#", "!", "^", "+"];
        let quoted = [
            "'a b'",
            "\"c  d\"",
            "'\"'",
            "\"'\"",
            "\"\\\"\\\\\\$\\a\"",
            "''",
            "\"\"",
            "\"a\nb\"",
            "'$x'",
            "\"#\"",
            "'\u{a0}'",
        ];
        let escaped =
            ["\\ ", "\\;", "\\'", "\\\"", "\\$", "\\\\", "\\a", "\\\n", "\\*", "\\#", "\\{", "\\~", "\\|"];
        let decoded = ["$'a\\tb'", "$'\\''", "$'\\101\\x42\\u43'", "$\"q r\"", "$'\\q'", "$'\\e[0m'"];
        let lists = [
            "{a,b}",
            "{1..3}",
            "{c,{d,e}}",
            "{,x}",
            "{a}",
            "{",
            "}",
            "a,b",
            "{01..3}",
            "{a..c}",
            "{x,y",
            "{3..1..2}",
        ];
        match self.chance.below(24) {
            12.. | 0..=3 => self.chance.one(&plain).to_owned(),
            4 | 5 => self.chance.one(&quoted).to_owned(),
            6 => self.chance.one(&escaped).to_owned(),
            7 => self.chance.one(&decoded).to_owned(),
            8 => self.chance.one(&lists).to_owned(),
            9 if depth > 0 => format!("\"$({})\"", self.substituted(depth - 1)),
            10 if depth > 0 => format!("\"${{u:-$({})}}\"", self.substituted(depth - 1)),
            11 if depth > 0 => format!("\"$(( 1 + 0$({}) ))\"", self.substituted(depth - 1)),
            _ => "z".to_owned(),
        }
    }
}

/// A text in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Signs and words of the grammar in any order, most of which no shell reads.
pub(super) fn soup(chance: &mut Chance) -> String {
    let parts = [
        "a", "b c", "if", "then", "elif", "else", "fi", "for", "x", "in", "do", "done", "while", "until",
        "case", "esac", ";;", ";", "&", "&&", "|", "||", "|&", "(", ")", "{", "}", "!", "\n", "<", ">", ">>",
        "<<", "<<<", "2>&1", "&>", "$(", "$((", "))", "`", "'", "\"", "\\", "\\\n", "$", "${", "${x", "[[",
        "]]", "((", "function", "f()", "#", "x=", "x=(", "EOF", "time", "*", "-f", "==", "=~", "<(", "$'",
        "select", "coproc", ";&", "\u{3000}", "a=b",
    ];
    let mut text = String::new();
    for _ in 0..=chance.below(9) {
        text += chance.one(&parts);
        text += chance.one(&[" ", " ", "", "\n"]);
    }
    text
}

/// A text with a piece taken out, or another put in.
pub(super) fn broken(text: &str, chance: &mut Chance) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=chance.below(2) {
        let at = chance.below(characters.len().max(1));
        let end = (at + 1 + chance.below(3)).min(characters.len());
        if chance.below(2) == 0 {
            characters.drain(at..end);
        } else {
            let put = chance.one(&[
                ")", "(", ";", "'", "\"", " fi ", " done ", "&", "|", "`", "}", "\n", "<<E\n", " do ",
            ]);
            characters.splice(at..at, put.chars());
        }
    }
    characters.into_iter().collect()
}
