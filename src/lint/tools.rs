//! Tool rules: names in the spelling of other tools, parameters that a kind does not have, hosted tools that nobody has;
//! and quotes of word processors anywhere in a policy.

use serde_json::Value;

use super::quoted;
use crate::call::{Kind, KindsBy};
use crate::policy::document::Document;
use crate::policy::document::{ToolAction, ToolRule, When};
use crate::policy::is_quoted;
use crate::policy::tool::covers;
use crate::problem::Problem;
use crate::provider::kind::Offered;
use crate::provider::{hosted, kind};

/// How many known types a warning suggests.
const SUGGESTED: usize = 3;

pub(super) fn warnings(document: &Document) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (number, rule) in document.spec.tools.iter().enumerate() {
        let place = format!("spec.tools[{number}]");
        for (item, name) in rule.tools.iter().flatten().enumerate() {
            let message = name_of_another_language(name);
            warnings.extend(message.map(|message| Problem::at(format!("{place}.tools[{item}]"), message)));
        }
        if let Some(when) = &rule.when {
            parameters(&format!("{place}.when"), when, rule, &mut warnings);
        }
    }
    let allowed = document.spec.hosted_tools.iter().flat_map(|hosted| hosted.allow.iter().flatten());
    for (item, written) in allowed.enumerate() {
        let place = format!("spec.hostedTools.allow[{item}]");
        warnings.extend(unknown_type(written).map(|message| Problem::at(place, message)));
    }
    if let Ok(spec) = serde_json::to_value(&document.spec) {
        quotes("spec", &spec, &mut warnings);
    }
    warnings
}

/// What to say of a name that is written as agents' own settings and regular expressions have it: no tool is called so.
fn name_of_another_language(name: &str) -> Option<String> {
    let text = quoted(name);
    if let Some((tool, _)) = name.split_once('(') {
        return Some(format!(
            "{text}: no tool is called so; an argument is a condition here: `tools: [{tool}]` with `when: {{param, \
             operator, values}}`"
        ));
    }
    if name.contains(['|', ',']) {
        return Some(format!("{text}: no tool is called so; each name is an item of the list"));
    }
    if name.contains(['[', ']', '{', '}', '\\', '+', '?', ')']) || name.starts_with(".*") {
        return Some(format!(
            "{text}: no tool is called so; a name is no regular expression, and `*` alone stands for any run of characters"
        ));
    }
    if let Some(tool) = name.strip_suffix(".*").or(name.strip_suffix(":*")).filter(|tool| is_known(tool)) {
        return Some(format!(
            "{text} is not about {tool}, only about names that begin with {:?}; write {tool}, which is every call of it",
            name.trim_end_matches('*')
        ));
    }
    let server = name.strip_prefix("mcp__")?;
    (!server.is_empty() && !server.contains("__") && !server.contains(['*', '%']))
        .then(|| format!("{text} is a server, and no tool of it is called so; {name}__* is all of its tools"))
}

/// Whether a tool of a known agent is called so.
fn is_known(name: &str) -> bool {
    kind::tool(name, None, false, &Offered::default()).by == KindsBy::Catalogue
}

/// Tells of parameters that mean something else, or nothing, in a rule with a kind. Calls that such a rule meets by name
/// have parameters of their own.
fn parameters(place: &str, when: &When, rule: &ToolRule, warnings: &mut Vec<Problem>) {
    for (key, list) in [("any", &when.any), ("all", &when.all)] {
        for (item, inner) in list.iter().flatten().enumerate() {
            parameters(&format!("{place}.{key}[{item}]"), inner, rule, warnings);
        }
    }
    if let Some(inner) = &when.not {
        parameters(&format!("{place}.not"), inner, rule, warnings);
    }
    let message = match (rule.kind, &when.param, &rule.tools) {
        (Some(kind), Some(param), None) => parameter(kind, param),
        (kind, Some(param), Some(names)) if kind != Some(Kind::Shell) => {
            command_as_text(param, names).filter(|_| rule.action == Some(ToolAction::Allow))
        }
        (_, _, _) => None,
    };
    warnings.extend(message.map(|message| Problem::at(format!("{place}.param"), message)));
}

/// What to say of a rule that allows commands of a shell and reads none of them.
fn command_as_text(param: &str, names: &[String]) -> Option<String> {
    let is_shell = |name: &String| {
        let tool = kind::tool(name, None, false, &Offered::default());
        let is_known = matches!(tool.by, KindsBy::Catalogue | KindsBy::Ending);
        (is_known && tool.kinds.contains(&Kind::Shell)) || covers(name, "Bash")
    };
    let name = names.iter().find(|name| is_shell(name))?;
    kind::is_parameter_of(Kind::Shell, param).then(|| {
        format!(
            "{} of {} is compared as it stands, so that what follows on `&&`, `;` or `|` is allowed with it; with \
             `kind: Shell`, `command` is every command in it",
            quoted(param),
            quoted(name)
        )
    })
}

fn parameter(kind: Kind, param: &str) -> Option<String> {
    let usual = match kind {
        Kind::Shell => "command",
        Kind::Read | Kind::Write => "paths",
        Kind::Fetch => "url",
    };
    let text = quoted(param);
    match param {
        "$" => None,
        _ if param == usual || (kind == Kind::Shell && OF_COMMANDS.contains(&param)) => None,
        _ if OF_COMMANDS.contains(&param) => Some(format!(
            "{text} is known with `kind: Shell` alone; here it is a parameter of this name in the input"
        )),
        "command" | "paths" | "url" => Some(format!(
            "a call of kind {kind:?} has no {param}, so the test is never about one; its parameter is `{usual}`"
        )),
        _ if kind::is_parameter_of(kind, param) => Some(format!(
            "{text} is what some agents call it: the test sees no other agent's calls; with `kind: {kind:?}` write \
             `{usual}`, which is the same in all of them"
        )),
        _ => Some(format!(
            "{text} is looked for by this name in the input of each agent's own tools, and most of them have none; with a \
             kind, `{usual}` is known in all of them; name the `tools` that have {text}, or use `$` for the whole input"
        )),
    }
}

/// What a simple command of kind Shell has beside `command`.
const OF_COMMANDS: &[&str] = &["program", "options", "opaque"];

/// What to say of a type that is no known hosted tool's.
fn unknown_type(written: &str) -> Option<String> {
    if hosted::types().any(|known| covers(written, known)) {
        return None;
    }
    let stem: String = written.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '_').take(6).collect();
    let alike = hosted::types().filter(|known| stem.len() > 2 && known.starts_with(&stem));
    let alike: Vec<_> = alike.take(SUGGESTED).collect();
    let remedy = if alike.is_empty() {
        "a type is what providers have as `type` of a tool, such as web_search_20250305".to_owned()
    } else {
        format!("known are {}, and others", alike.join(", "))
    };
    let stays = if written.contains('*') { "what it covers" } else { "exactly it" };
    Some(format!(
        "{} is not among the types that this version knows; it stays where a request has {stays}; {remedy}",
        quoted(written)
    ))
}

/// Tells of every text that begins or ends with a typographic quote. A reason is prose.
fn quotes(place: &str, value: &Value, warnings: &mut Vec<Problem>) {
    match value {
        Value::String(text) if is_quoted(text) => warnings.push(Problem::at(
            place,
            format!(
                "{} has typographic quotes around it, which are letters of the text; write plain ones (\")",
                quoted(text)
            ),
        )),
        Value::Array(items) => {
            for (item, value) in items.iter().enumerate() {
                quotes(&format!("{place}[{item}]"), value, warnings);
            }
        }
        Value::Object(entries) => {
            for (key, value) in entries.iter().filter(|(key, _)| *key != "reason") {
                quotes(&format!("{place}.{key}"), value, warnings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
