//! Answers what an agent asks at the gateway's own name: why something was denied, and what the policies name. Pure.

pub mod denials;
pub mod mcp;
pub mod permissions;

use std::borrow::Cow;

use http::{HeaderMap, header};
use serde::Serialize;
use serde_json::{Value, json};

use crate::event::Id;
use crate::policy::document::Explain;
use crate::policy::explain::ShownDecision;
use denials::Denial;
use mcp::Action;

/// The longest body that is read, in bytes.
pub const MOST_BODY: usize = 64 << 10;

/// Of the questions answered at once, how many; and how many a second from then on.
pub const MOST_A_SECOND: u32 = 10;

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub method: &'a str,
    /// Without the query.
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    pub body: Body<'a>,
}

/// The body of a question.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// Empty where none is read.
    Whole(&'a [u8]),
    TooLong,
}

/// An answer, in JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The `Allow` of a 405.
    pub allow: Option<&'static str>,
    /// Empty where there is none.
    pub body: String,
}

/// What the gateway knows, through which questions are answered.
pub trait Source {
    /// What may be asked.
    fn explains(&self) -> Explain;

    /// The denial with the id of an event.
    fn denial(&self, event: Id) -> Option<Denial>;

    /// What the policies name, where all of it may be asked.
    fn permissions(&self) -> Value;

    /// Whether the workspace may be asked about.
    fn has_workspace(&self) -> bool {
        false
    }

    /// What would become of a tool call or a request, where that may be asked.
    ///
    /// # Errors
    /// The action has a mistake, in words.
    fn check(&self, action: &Action) -> Result<ShownDecision, String>;
}

/// Whether the body of a question is read.
pub fn has_body(method: &str, path: &str, headers: &HeaderMap) -> bool {
    method == "POST" && path == MCP && !headers.contains_key(header::ORIGIN)
}

const MCP: &str = "/mcp";

/// Answers a question.
pub fn answer(question: &Question<'_>, source: &impl Source) -> Answer {
    if question.headers.contains_key(header::ORIGIN) {
        return Answer::error(403, "A page in a browser may not ask");
    }
    let is_read = matches!(question.method, "GET" | "HEAD");
    match question.path {
        "/" if is_read => Answer::of(200, &index(source)),
        "/policy" if is_read && source.explains() == Explain::Policy => {
            Answer::of(200, &source.permissions())
        }
        "/policy" if is_read => Answer::error(403, "The policies of this pod do not say explain: Policy"),
        "/" | "/policy" => Answer::wrong_method("GET, HEAD"),
        MCP => match question.body {
            _ if question.method != "POST" => Answer::wrong_method("POST"),
            Body::Whole(body) => mcp::answer(question.headers, body, source),
            Body::TooLong => mcp::too_long(),
        },
        path => match path.strip_prefix("/why/") {
            Some(event) if is_read => why(event, source),
            Some(_) => Answer::wrong_method("GET, HEAD"),
            None => Answer::error(404, "Nothing is served here; GET / says what is"),
        },
    }
}

/// What is served.
fn index(source: &impl Source) -> Value {
    let explains = source.explains();
    let mut questions = json!({
        "GET /why/EVENT": "why the event with this id was denied",
        "POST /mcp": "the same as tools of the Model Context Protocol",
    });
    if explains == Explain::Policy {
        questions["GET /policy"] = json!("which hosts, paths, tools and limits the policies name");
    }
    if source.has_workspace() {
        questions["GET /workspace/map"] = json!("lines of the workspace's files that look like declarations");
        questions["GET /workspace/anatomy?path=PATH"] = json!("the same of one directory or file");
    }
    json!({
        "about": "The gateway through which this agent's traffic leaves. It answers here and changes nothing.",
        "explain": explains,
        "questions": questions,
    })
}

fn why(event: &str, source: &impl Source) -> Answer {
    let Some(id) = Id::parse(event) else { return Answer::error(400, NOT_AN_ID) };
    match source.denial(id) {
        Some(denial) => Answer::of(200, &denial),
        None => Answer::error(404, NOT_A_DENIAL),
    }
}

const NOT_AN_ID: &str = "This is no id of an event; a refusal and the header x-postern-event have it";

/// Why an event is not known.
const NOT_A_DENIAL: &str = "No denial with this id is kept: the last 256 since the gateway started are";

impl Answer {
    /// An answer with this JSON.
    pub fn of(status: u16, body: &impl Serialize) -> Self {
        // Of plain data no serialisation fails.
        let text = serde_json::to_string(body).unwrap_or_default();
        Self { status, allow: None, body: plain(&text) + "\n" }
    }

    /// An error in words.
    pub fn error(status: u16, message: &str) -> Self {
        Self::of(status, &json!({"error": message}))
    }

    fn wrong_method(allow: &'static str) -> Self {
        Self { allow: Some(allow), ..Self::error(405, "This takes another method") }
    }
}

/// A JSON text in which everything beyond printable ASCII is escaped, and what begins markup too: whatever a name that
/// others chose holds, no terminal, browser or Markdown reader acts on it.
fn plain(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for sign in json.chars() {
        match sign {
            '<' | '>' | '&' | '`' => escape(sign, &mut plain),
            ' '..='~' => plain.push(sign),
            _ => escape(sign, &mut plain),
        }
    }
    plain
}

fn escape(sign: char, plain: &mut String) {
    for unit in sign.encode_utf16(&mut [0; 2]) {
        plain.push_str(&format!("\\u{unit:04x}"));
    }
}

/// A text of at most `most` characters.
fn short(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Decision;
    use crate::event::Kind;
    use crate::ledger::fresh_id;
    use denials::Denials;

    struct Known(Denials, Explain);

    impl Source for Known {
        fn explains(&self) -> Explain {
            self.1
        }

        fn denial(&self, event: Id) -> Option<Denial> {
            self.0.find(event)
        }

        fn permissions(&self) -> Value {
            json!({"destinations": "told"})
        }

        fn check(&self, _action: &Action) -> Result<ShownDecision, String> {
            Err("not here".to_owned())
        }
    }

    fn known() -> (Known, Id) {
        let (denials, id) = (Denials::default(), fresh_id());
        let decision = Decision::builtin("default-deny", "No rule names\u{202e} <b>\u{7}it</b>");
        denials.keep(Denial::new(id, Kind::Request, &decision, vec!["command".to_owned()]));
        (Known(denials, Explain::Denials), id)
    }

    fn question<'a>(method: &'a str, path: &'a str, headers: &'a HeaderMap) -> Question<'a> {
        Question { method, path, headers, body: Body::Whole(b"") }
    }

    fn asked(method: &str, path: &str) -> Answer {
        answer(&question(method, path, &HeaderMap::new()), &known().0)
    }

    #[test]
    fn a_denial_is_told_with_its_rule_its_reason_and_the_parameters_that_the_rule_reads() {
        let (known, id) = known();
        let path = format!("/why/{id}");
        let answer = answer(&question("GET", &path, &HeaderMap::new()), &known);
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(body["event"], id.to_string());
        assert_eq!(body["rule"], "postern/builtin/default-deny");
        assert_eq!(body["parameters"][0], "command");
        assert!(answer.body.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')), "{}", answer.body);
        assert!(!answer.body.contains('<'), "{}", answer.body);
    }

    #[test]
    fn the_policies_are_told_where_they_say_so_and_nowhere_else() {
        for (explains, status) in [(Explain::Denials, 403), (Explain::Policy, 200)] {
            let known = Known(Denials::default(), explains);
            let ask = |path| answer(&question("GET", path, &HeaderMap::new()), &known);
            let told = ask("/policy");
            assert_eq!(told.status, status);
            assert_eq!(told.body.contains("told"), status == 200, "{}", told.body);
            assert_eq!(ask("/").body.contains("/policy"), status == 200);
        }
    }

    #[test]
    fn whoever_asks_wrongly_is_told_how_to_ask() {
        assert_eq!(asked("GET", "/").status, 200);
        for (method, path, status) in [
            ("GET", "/why/", 400),
            ("GET", "/why/../../etc/passwd", 400),
            ("GET", "/why/01a2008d-0000-7000-8000-000000000000", 404),
            ("GET", "/other", 404),
            ("GET", "", 404),
            ("POST", "/", 405),
            ("GET", "/mcp", 405),
            ("DELETE", "/mcp", 405),
            ("POST", "/mcp", 415),
            ("DELETE", "/why/01a2008d-0000-7000-8000-000000000000", 405),
        ] {
            let answer = asked(method, path);
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(answer.allow.is_some(), status == 405, "{method} {path}");
            assert!(answer.body.contains("error"), "{method} {path}");
        }
    }

    #[test]
    fn a_page_in_a_browser_is_told_nothing() {
        let (known, id) = known();
        for path in [format!("/why/{id}"), "/".to_owned(), "/x".to_owned(), "/mcp".to_owned()] {
            let origin = HeaderMap::from_iter([(header::ORIGIN, "http://postern.internal".parse().unwrap())]);
            let answer = answer(&question("GET", &path, &origin), &known);
            assert!(answer.status == 403 && !answer.body.contains("default-deny"), "{}", answer.body);
        }
    }
}
