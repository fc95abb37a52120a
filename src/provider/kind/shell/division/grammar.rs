//! The grammar: lists, pipelines and compound commands.

use super::WordForm;
use super::place::Place;
use super::reader::Reader;
use super::state::{Record, Step, Stop};
use super::word::having;

/// Words of the grammar where a command begins.
const KEYWORDS: &[&str] = &[
    "if", "in", "then", "elif", "else", "fi", "for", "select", "while", "until", "do", "done", "case",
    "esac", "function", "{", "}", "!", "[[", "]]", "time", "coproc",
];

/// Those of them that end a list.
const ENDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// The most functions of a text.
const MOST_FUNCTIONS: usize = 64;

/// Bytes behind which a word of the grammar is whole.
const ENDS_WORD: [bool; 256] = having(b" \t\n;&|<>()", [false; 256]);

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

impl Reader<'_, '_> {
    /// A whole text.
    pub(super) fn program(&mut self) -> Step<()> {
        self.list()?;
        if self.peek().is_some() || !self.pending.is_empty() {
            return Err(Stop);
        }
        Ok(())
    }

    /// Commands up to what ends them; returns how many lists of `&&` and `||` there were.
    pub(super) fn list(&mut self) -> Step<usize> {
        let (mut count, mut is_ended) = (0, false);
        loop {
            self.skip_lines()?;
            if self.is_at_end() {
                self.state.is_ended = is_ended;
                return Ok(count);
            }
            let place = self.state.place.clone();
            self.chain()?;
            count += 1;
            is_ended = self.state.is_ended;
            self.skip_blanks();
            match self.peek() {
                Some(b';') if self.second() != Some(b';') && self.second() != Some(b'&') => self.at += 1,
                Some(b'&') => {
                    self.at += 1;
                    self.state.place = place;
                    is_ended = false;
                }
                Some(b'\n') => {}
                _ => {
                    self.state.is_ended = is_ended;
                    return Ok(count);
                }
            }
        }
    }

    /// The same, with at least one.
    fn some_list(&mut self) -> Step<()> {
        if self.list()? == 0 { Err(Stop) } else { Ok(()) }
    }

    fn is_at_end(&mut self) -> bool {
        match self.peek() {
            None | Some(b')' | b';') => true,
            Some(_) => self.keyword().is_some_and(|keyword| ENDS.contains(&keyword)),
        }
    }

    /// The word of the grammar that stands here.
    fn keyword(&mut self) -> Option<&'static str> {
        let first = self.peek()?;
        // Asked several times for each command.
        if !b"iteufswdc{}![]".contains(&first) {
            return None;
        }
        let rest = self.rest();
        let length = rest.bytes().take(9).take_while(|byte| !ENDS_WORD[usize::from(*byte)]).count();
        let word = rest.get(..length)?;
        KEYWORDS.iter().copied().find(|keyword| *keyword == word)
    }

    fn is_at_keyword(&mut self, keyword: &str) -> bool {
        self.peek() == keyword.bytes().next() && self.keyword() == Some(keyword)
    }

    fn eat_keyword(&mut self, keyword: &str) -> bool {
        let is_next = self.is_at_keyword(keyword);
        self.at += if is_next { keyword.len() } else { 0 };
        is_next
    }

    fn expect_keyword(&mut self, keyword: &str) -> Step<()> {
        if self.eat_keyword(keyword) { Ok(()) } else { Err(Stop) }
    }

    /// Pipelines with `&&` and `||` between them.
    fn chain(&mut self) -> Step<()> {
        let start = self.state.place.clone();
        let (moves, count) = (self.state.moves, self.state.count());
        let is_negated = self.pipeline()?;
        let is_one = self.state.moves == moves + 1 && self.state.count() == count + 1;
        let mut is_single_move = is_one && !is_negated;
        let mut is_ended = self.state.is_ended;
        // Wherever one of them failed.
        let mut reached = self.state.place.clone().or(&start);
        loop {
            self.skip_blanks();
            match (self.peek(), self.second()) {
                (Some(b'&'), Some(b'&')) => {
                    self.next_of_chain()?;
                    self.pipeline()?;
                }
                (Some(b'|'), Some(b'|')) => {
                    let after = self.state.place.clone();
                    let failed = if is_single_move { &start } else { &reached };
                    self.state.place = failed.clone();
                    self.next_of_chain()?;
                    self.pipeline()?;
                    // Behind `cd a || exit` all went well.
                    if self.state.is_ended {
                        reached = after.clone();
                        self.state.place = after;
                    } else {
                        self.state.place = after.or(&self.state.place);
                    }
                }
                _ => break,
            }
            reached = self.state.place.clone().or(&reached);
            (is_single_move, is_ended) = (false, false);
        }
        if self.state.moves != moves {
            self.state.place = reached;
        }
        self.state.is_ended = is_ended;
        Ok(())
    }

    fn next_of_chain(&mut self) -> Step<()> {
        for _ in 0..2 {
            self.peek();
            self.at += 1;
        }
        self.skip_lines()
    }

    /// Commands with `|` between them; returns whether `!` stands in front.
    fn pipeline(&mut self) -> Step<bool> {
        let mut is_negated = false;
        loop {
            if self.is_timed() {
                self.at += "time".len();
                self.skip_blanks();
                for option in ["-p", "--"] {
                    let follows =
                        self.rest().strip_prefix(option).is_some_and(|rest| rest.starts_with([' ', '\t']));
                    self.at += if follows { option.len() } else { 0 };
                    self.skip_blanks();
                }
            } else if self.eat_keyword("!") {
                is_negated = true;
            } else {
                break;
            }
            self.skip_blanks();
        }
        let (before, first) = (self.state.place.clone(), self.state.count());
        let mut is_single = true;
        self.command()?;
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'|') || self.second() == Some(b'|') {
                break;
            }
            self.at += 1;
            self.eat(b'&');
            self.skip_lines()?;
            is_single = false;
            self.state.place = before.clone();
            self.command()?;
        }
        if !is_single {
            self.state.pipe_since(first);
        }
        if !is_single || is_negated {
            self.state.is_ended = false;
            // What follows `!` runs where changing the directory failed, or behind `||` where it did not.
            // zsh and ksh run the last command themselves, the others none of them.
            self.state.place = before.or(&self.state.place);
        }
        Ok(is_negated)
    }

    /// Whether `time` stands here as a word of the grammar; with other options it is the program.
    fn is_timed(&mut self) -> bool {
        self.is_at_keyword("time") && {
            let rest = self.rest().get("time".len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
            !rest.starts_with('-') || rest.starts_with("-p ") || rest.starts_with("-- ")
        }
    }

    fn command(&mut self) -> Step<()> {
        let compound: fn(&mut Self) -> Step<()> = match (self.keyword(), self.peek(), self.second()) {
            (Some("if"), ..) => Self::conditional,
            (Some("while" | "until"), ..) => Self::while_loop,
            (Some("for"), ..) => Self::for_loop,
            (Some("select"), ..) => Self::for_loop,
            (Some("case"), ..) => Self::case,
            (Some("{"), ..) => Self::group,
            (Some("[["), ..) => Self::condition,
            (Some("function"), ..) => return self.keyword_function(),
            // What runs beside the shell, under a name that shells read differently, and words that begin nothing.
            (Some("time"), ..) => return self.simple(),
            (Some(_), ..) => return Err(Stop),
            (None, Some(b'('), Some(b'(')) => Self::arithmetic_command,
            (None, Some(b'('), _) => Self::subshell,
            (None, ..) => return self.simple(),
        };
        let (before, is_group) = (self.state.here(), self.is_at_keyword("{"));
        self.state.enter()?;
        compound(self)?;
        self.state.leave();
        let (is_ended, end) = (self.state.is_ended && is_group, self.at);
        self.redirections_of(before)?;
        // Where a redirection fails, nothing of the group runs.
        self.state.is_ended = is_ended && self.from(end).bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        Ok(())
    }

    /// The redirections behind a compound command.
    fn redirections_of(&mut self, place: Place) -> Step<()> {
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            let start = self.at;
            if self.is_at_descriptor() {
                while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.at += 1;
                }
            }
            let is_aside = super::simple::is_aside_number(self.from(start));
            if !self.redirection(is_aside, &mut redirections)? {
                break;
            }
        }
        if !redirections.is_empty() {
            super::wrapper::builtin::hide_texts(&redirections, self.state);
            let order = self.state.next_order();
            self.state.record(Record { words: Vec::new(), redirections, place, is_piped: false, order })?;
        }
        self.skip_blanks();
        match self.peek() {
            None | Some(b'\n' | b';' | b'&' | b'|' | b')') => Ok(()),
            Some(_) if self.is_at_end() => Ok(()),
            Some(_) => Err(Stop),
        }
    }

    /// Whether digits stand here that belong to a redirection.
    fn is_at_descriptor(&mut self) -> bool {
        self.peek();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && matches!(self.rest().as_bytes().get(digits), Some(b'<' | b'>'))
    }

    fn group(&mut self) -> Step<()> {
        self.expect_keyword("{")?;
        self.some_list()?;
        self.expect_keyword("}")
    }

    fn subshell(&mut self) -> Step<()> {
        let place = self.state.place.clone();
        self.expect(b'(')?;
        self.some_list()?;
        self.expect(b')')?;
        self.state.place = place;
        Ok(())
    }

    /// `((…))`, which dash reads as two subshells.
    fn arithmetic_command(&mut self) -> Step<()> {
        self.expect(b'(')?;
        self.expect(b'(')?;
        let start = self.at;
        self.arithmetic(b')')?;
        let expression = self.from(start);
        self.state.is_opaque |= has_two_words(expression.strip_suffix(')').unwrap_or(expression));
        self.expect(b')')
    }

    fn conditional(&mut self) -> Step<()> {
        self.expect_keyword("if")?;
        let mut ends: Option<Place> = None;
        loop {
            self.some_list()?;
            self.expect_keyword("then")?;
            let otherwise = self.state.place.clone();
            self.some_list()?;
            let end = std::mem::replace(&mut self.state.place, otherwise);
            ends = Some(ends.map_or(end.clone(), |ends| ends.or(&end)));
            if !self.eat_keyword("elif") {
                break;
            }
        }
        if self.eat_keyword("else") {
            self.some_list()?;
        }
        if let Some(ends) = ends {
            self.state.place = ends.or(&self.state.place);
        }
        self.expect_keyword("fi")
    }

    fn while_loop(&mut self) -> Step<()> {
        self.at += "while".len();
        self.repeated(|reader| {
            reader.some_list()?;
            reader.body()
        })
    }

    /// Reads what may run several times, or not at all.
    fn repeated(&mut self, read: impl FnOnce(&mut Self) -> Step<()>) -> Step<()> {
        let (before, first) = (self.state.place.clone(), self.state.count());
        let (order, had_moving) = (self.state.next_order(), self.state.has_moving_function);
        read(self)?;
        // A function that is defined here may have another body in the next turn.
        if !self.state.place.is_at(&before) || self.state.has_moving_function != had_moving {
            self.state.unsettle_since(first, order);
            self.state.place.unsettle(order);
            self.state.place = before.or(&self.state.place);
        }
        Ok(())
    }

    fn body(&mut self) -> Step<()> {
        self.expect_keyword("do")?;
        self.some_list()?;
        self.expect_keyword("done")
    }

    /// `for name in words; do …; done`, `select …`, `for ((…;…;…)) do …; done`
    fn for_loop(&mut self) -> Step<()> {
        self.at += self.keyword().map_or(0, str::len);
        self.skip_blanks();
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.expect(b'(')?;
            self.arithmetic(b')')?;
            self.expect(b')')?;
            self.skip_blanks();
            self.eat(b';');
        } else {
            let name = self.word(false)?.ok_or(Stop)?;
            let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !name.is_bare() || !is_name(&name.text) {
                return Err(Stop);
            }
            self.state.assign_within(&name.text);
            self.for_words()?;
        }
        self.skip_lines()?;
        self.repeated(|reader| if reader.keyword() == Some("{") { reader.group() } else { reader.body() })
    }

    fn for_words(&mut self) -> Step<()> {
        self.skip_blanks();
        let may_go_on = !self.eat(b';');
        self.skip_lines()?;
        if !may_go_on || !self.eat_bare("in") {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            let Some(word) = self.word(false)? else { break };
            self.state.evaluation.has_hidden_code |= word.hides_code();
            let mut words = Vec::new();
            self.expand(word, &mut words)?;
            for word in words {
                self.state.hide_expression(&word.text);
                if word.form != WordForm::Computed {
                    self.state.hide_code(&word.text);
                }
            }
        }
        if !self.eat(b';') && self.peek() != Some(b'\n') {
            return Err(Stop);
        }
        Ok(())
    }

    /// Goes over a bare word.
    fn eat_bare(&mut self, word: &str) -> bool {
        self.peek();
        let rest = self.rest().strip_prefix(word);
        let is_next = rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '(', ')', '&', '|'])
        });
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn case(&mut self) -> Step<()> {
        self.expect_keyword("case")?;
        self.skip_blanks();
        self.word(false)?.ok_or(Stop)?;
        self.skip_lines()?;
        if !self.eat_bare("in") {
            return Err(Stop);
        }
        let before = self.state.place.clone();
        let mut end = before.clone();
        loop {
            self.skip_lines()?;
            if self.eat_bare("esac") {
                break;
            }
            self.patterns()?;
            self.state.place = before.clone();
            self.list()?;
            end = end.or(&self.state.place);
            if !self.end_of_item()? {
                self.skip_lines()?;
                self.expect_keyword("esac")?;
                break;
            }
        }
        self.state.place = end;
        Ok(())
    }

    /// `a | b)`
    fn patterns(&mut self) -> Step<()> {
        self.eat(b'(');
        loop {
            self.skip_blanks();
            self.word(false)?.ok_or(Stop)?;
            self.state.count_word()?;
            self.skip_blanks();
            if self.eat(b')') {
                return Ok(());
            }
            self.expect(b'|')?;
        }
    }

    /// `;;`, `;&`, `;;&`
    fn end_of_item(&mut self) -> Step<bool> {
        if !self.eat(b';') {
            return Ok(false);
        }
        if self.eat(b'&') {
            return Ok(true);
        }
        self.expect(b';')?;
        self.eat(b'&');
        Ok(true)
    }

    /// `function name {…}`, `function name () {…}`
    fn keyword_function(&mut self) -> Step<()> {
        self.expect_keyword("function")?;
        self.skip_blanks();
        let name = self.word(false)?.ok_or(Stop)?;
        if !name.is_bare() {
            return Err(Stop);
        }
        self.skip_blanks();
        if self.eat(b'(') {
            self.skip_blanks();
            self.expect(b')')?;
        }
        self.function(&name.text)
    }

    /// The body of a function, which runs wherever it is called.
    pub(super) fn function(&mut self, name: &str) -> Step<()> {
        self.state.is_opaque |= is_keyword(name) || super::wrapper::is_read(name);
        self.skip_lines()?;
        let is_compound =
            matches!(self.keyword(), Some("if" | "while" | "until" | "for" | "select" | "case" | "{" | "[["));
        if !is_compound && self.peek() != Some(b'(') {
            return Err(Stop);
        }
        let (before, moves) = (self.state.place.clone(), self.state.moves);
        self.state.place = Place::computed();
        self.command()?;
        self.state.place = before;
        let is_moving = self.state.moves != moves;
        self.state.has_moving_function |= is_moving;
        self.state.moves_anytime |= is_moving && self.state.has_trap;
        self.state.is_opaque |= self.state.functions.len() == MOST_FUNCTIONS;
        if self.state.functions.len() < MOST_FUNCTIONS {
            self.state.functions.push(name.to_owned());
        }
        self.state.is_ended = false;
        Ok(())
    }
}

/// Whether an expression could be a command with an operand for a shell that does not know expressions.
fn has_two_words(expression: &str) -> bool {
    let mut words = expression.split_ascii_whitespace().peekable();
    while let (Some(word), Some(next)) = (words.next(), words.peek()) {
        let ends_in_name = word.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let is_operator = next.bytes().all(|byte| b"=+-*/%<>&|^!?:,".contains(&byte));
        if ends_in_name && !is_operator {
            return true;
        }
    }
    false
}
