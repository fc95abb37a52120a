//! Answers what an agent asks at the gateway's own name: why something was denied, what the policies name, and what was cut
//! out of its requests. Pure.

pub mod denials;
pub mod evidence;
pub mod mcp;
pub mod permissions;

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, header};
use serde::Serialize;
use serde_json::{Value, json};

use crate::event::Id;
use crate::policy::document::Explain;
use crate::policy::explain::ShownDecision;
use crate::tool_output::evidence_id::EvidenceId;
use denials::Denial;
use evidence::{EvidenceAccess, Lines, MOST_EXCERPT, NotTold, excerpt};
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
    pub query: Option<&'a str>,
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

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub content_type: &'static str,
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

    /// How texts that were cut out of requests may be read.
    fn evidence_access(&self) -> EvidenceAccess;

    /// The text that [`wanted_evidence`] named.
    ///
    /// # Errors
    /// Why there is none.
    fn evidence(&self, id: EvidenceId) -> Result<Arc<str>, NotTold>;
}

/// Whether the body of a question is read.
pub fn has_body(method: &str, path: &str, headers: &HeaderMap) -> bool {
    method == "POST" && path == MCP && !headers.contains_key(header::ORIGIN)
}

const MCP: &str = "/mcp";
const EVIDENCE: &str = "/evidence/";
const WHY: &str = "/why/";

/// The text that has to be read before the question can be answered.
pub fn wanted_evidence(question: &Question<'_>, access: EvidenceAccess) -> Option<EvidenceId> {
    if access == EvidenceAccess::None || question.headers.contains_key(header::ORIGIN) {
        return None;
    }
    match (question.method, question.path, question.body) {
        ("POST", MCP, Body::Whole(body)) if access == EvidenceAccess::ToolToo => {
            mcp::wanted_evidence(question.headers, body)
        }
        ("GET" | "HEAD", path, _) => EvidenceId::parse(path.strip_prefix(EVIDENCE)?),
        _ => None,
    }
}

/// Whether there are tools.
fn has_tools(source: &impl Source) -> bool {
    source.explains() != Explain::None || source.evidence_access() == EvidenceAccess::ToolToo
}

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
        MCP if has_tools(source) => match question.body {
            _ if question.method != "POST" => Answer::wrong_method("POST"),
            Body::Whole(body) => mcp::answer(question.headers, body, source),
            Body::TooLong => mcp::too_long(),
        },
        path if path.starts_with(WHY) || path.starts_with(EVIDENCE) => match path.strip_prefix(WHY) {
            _ if !is_read => Answer::wrong_method("GET, HEAD"),
            Some(_) if source.explains() == Explain::None => Answer::error(403, NOTHING_EXPLAINED),
            Some(event) => why(event, source),
            None => kept(path.strip_prefix(EVIDENCE).unwrap_or_default(), question.query, source),
        },
        _ => Answer::error(404, "Nothing is served here; GET / says what is"),
    }
}

/// Answers with a kept text, whole or those lines of it that are asked for.
fn kept(id: &str, query: Option<&str>, source: &impl Source) -> Answer {
    let Some(id) = EvidenceId::parse(id).filter(|_| source.evidence_access() != EvidenceAccess::None) else {
        return Answer::error(404, evidence::UNKNOWN);
    };
    let lines = match Lines::of_query(query.unwrap_or_default()) {
        Ok(lines) => lines,
        Err(why) => return Answer::error(400, why),
    };
    let text = match source.evidence(id) {
        Ok(text) => text,
        Err(why) => return Answer::error(why.status(), why.words()),
    };
    let told = match &lines {
        None => Ok((*text).to_owned()),
        Some(lines) => excerpt(&text, lines, MOST_EXCERPT),
    };
    match told {
        Ok(body) => Answer { status: 200, content_type: "text/plain; charset=utf-8", allow: None, body },
        Err(why) => Answer::error(400, &why),
    }
}

/// What is served.
fn index(source: &impl Source) -> Value {
    let (explains, access) = (source.explains(), source.evidence_access());
    let mut questions = json!({});
    if explains != Explain::None {
        questions["GET /why/EVENT"] = json!("why the event with this id was denied");
    }
    if has_tools(source) {
        questions["POST /mcp"] = json!("the same as tools of the Model Context Protocol");
    }
    if access != EvidenceAccess::None {
        questions["GET /evidence/ID"] = json!(
            "all of a tool result that was cut; ?from=, ?to= and ?match= choose lines by number and by a text in them"
        );
    }
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

/// Why nothing is told of denials.
const NOTHING_EXPLAINED: &str = "The policies of this pod say explain: None";

const NOT_AN_ID: &str = "This is no id of an event; a refusal and the header x-postern-event have it";

/// Why an event is not known.
const NOT_A_DENIAL: &str = "No denial with this id is kept: the last 256 since the gateway started are";

const JSON: &str = "application/json";

impl Answer {
    /// An answer with this JSON.
    pub fn of(status: u16, body: &impl Serialize) -> Self {
        // Of plain data no serialisation fails.
        let text = serde_json::to_string(body).unwrap_or_default();
        Self { status, content_type: JSON, allow: None, body: plain(&text) + "\n" }
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

    struct Known(Denials, Explain, EvidenceAccess);

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

        fn evidence_access(&self) -> EvidenceAccess {
            self.2
        }

        fn evidence(&self, id: EvidenceId) -> Result<Arc<str>, NotTold> {
            if id == EvidenceId::of("kept\n") { Ok("kept\n".into()) } else { Err(NotTold::Unknown) }
        }
    }

    fn known() -> (Known, Id) {
        let (denials, id) = (Denials::default(), fresh_id());
        let decision = Decision::builtin("default-deny", "No rule names\u{202e} <b>\u{7}it</b>");
        denials.keep(Denial::new(id, Kind::Request, &decision, vec!["command".to_owned()]));
        (Known(denials, Explain::Denials, EvidenceAccess::None), id)
    }

    fn question<'a>(method: &'a str, path: &'a str, headers: &'a HeaderMap) -> Question<'a> {
        Question { method, path, query: None, headers, body: Body::Whole(b"") }
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
            let known = Known(Denials::default(), explains, EvidenceAccess::None);
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
    fn a_kept_text_is_told_as_it_is_whatever_the_policies_explain() {
        let path = format!("/evidence/{}", EvidenceId::of("kept\n"));
        let ask = |access, path: &str| {
            let known = Known(Denials::default(), Explain::None, access);
            let (headers, wanted) =
                (HeaderMap::new(), path.strip_prefix(EVIDENCE).and_then(EvidenceId::parse));
            let question = question("GET", path, &headers);
            assert_eq!(wanted_evidence(&question, access), wanted.filter(|_| access != EvidenceAccess::None));
            answer(&question, &known)
        };
        let told = ask(EvidenceAccess::Http, &path);
        assert_eq!((told.status, told.body.as_str()), (200, "kept\n"));
        assert_eq!(told.content_type, "text/plain; charset=utf-8");
        for path in [
            "/evidence/e3b0c44298fc1c149afb",
            "/evidence/",
            "/evidence/../why/x",
            "/evidence/e3b0c44298fc1c149afb.txt",
            "/evidence/E3B0C44298FC1C149AFB",
        ] {
            assert_eq!(ask(EvidenceAccess::Http, path).status, 404, "{path}");
        }
        assert_eq!(ask(EvidenceAccess::None, &path).status, 404);
        assert_eq!(ask(EvidenceAccess::Http, "/why/01a2008d-0000-7000-8000-000000000000").status, 403);
        assert_eq!(ask(EvidenceAccess::Http, "/mcp").status, 404, "there is no tool");
        let index = ask(EvidenceAccess::Http, "/").body;
        assert!(
            index.contains("/evidence/") && !index.contains("/why/") && !index.contains("/mcp"),
            "{index}"
        );
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
