//! Variables that hold placeholders instead of keys, as the pod's annotation lists them.

use serde_json::Value;

use super::shape::{Located, agents, annotation, edit_agents, set_variable, text, variable};
use super::trust::{ADDED, JAVA, WHOLE};
use crate::pod;

/// More than a pod holds keys.
const MOST: usize = 64;

/// A variable and the placeholder that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placeholder {
    pub(super) variable: String,
    pub(super) value: String,
}

/// Reads the annotation: `ANTHROPIC_API_KEY=anthropic,OPENAI_API_KEY=openai`.
///
/// # Errors
/// Sentences that say which entry is invalid, and why.
pub(super) fn read(pod: &Value) -> Result<Vec<Placeholder>, Vec<String>> {
    let written = annotation(pod, pod::PLACEHOLDERS);
    let entries = written.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let mut placeholders: Vec<Placeholder> = Vec::new();
    let mut problems = Vec::new();
    for entry in entries.take(MOST + 1) {
        match placeholder(entry) {
            Ok(new) if placeholders.iter().any(|other| other.variable == new.variable) => {
                problems.push(format!("{} is there twice", new.variable));
            }
            Ok(new) => placeholders.push(new),
            Err(problem) => problems.push(problem),
        }
    }
    if placeholders.len() > MOST {
        problems.push(format!("lists more than {MOST} variables"));
    }
    if problems.is_empty() {
        return Ok(placeholders);
    }
    let path = format!("metadata.annotations[{}]", pod::PLACEHOLDERS);
    Err(problems.into_iter().map(|problem| format!("{path}: {problem}")).collect())
}

/// Sets the variables of every agent.
pub(super) fn set(pod: &mut Value, placeholders: &[Placeholder]) {
    edit_agents(pod, |_, container| set_in(container, placeholders));
}

/// Sets the variables of one container.
pub(super) fn set_in(container: &mut Value, placeholders: &[Placeholder]) {
    for placeholder in placeholders {
        set_variable(container, &placeholder.variable, &placeholder.value);
    }
}

/// Warns of keys that agents no longer get.
pub(super) fn warnings(pod: &Value, placeholders: &[Placeholder]) -> Vec<String> {
    agents(pod).flat_map(|agent| warnings_of(&agent, placeholders)).collect()
}

/// The same of one container.
pub(super) fn warnings_of(container: &Located<'_>, placeholders: &[Placeholder]) -> Vec<String> {
    let path = &container.path;
    let warn = |placeholder: &Placeholder| {
        let name = &placeholder.variable;
        let entry = variable(container.value, name)?;
        if !entry["valueFrom"].is_null() {
            return Some(format!(
                "{path}: {name} holds a placeholder instead of what valueFrom reads: the gateway alone knows the key"
            ));
        }
        let differs = text(entry, "value") != placeholder.value;
        differs.then(|| format!("{path}: {name} holds a placeholder instead of the value that was written"))
    };
    placeholders.iter().filter_map(warn).collect()
}

fn placeholder(entry: &str) -> Result<Placeholder, String> {
    let shown: String = entry.chars().take(40).collect();
    let Some((variable, value)) = entry.split_once('=') else {
        return Err(format!("{shown:?} is no VARIABLE=CREDENTIAL"));
    };
    if !is_variable(variable) {
        return Err(format!("{shown:?} begins with no name of a variable: letters, digits and \"_\""));
    }
    if WHOLE.contains(&variable) || ADDED.contains(&variable) || variable == JAVA {
        return Err(format!("{variable} is set by Postern: it names the CAs to trust"));
    }
    if is_credential(value) {
        return Ok(Placeholder { variable: variable.to_owned(), value: format!("postern:{value}") });
    }
    // No character that Kubernetes would expand (`$(NAME)`) or a shell would read.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":_-./+=~".contains(&byte);
    if !(8..=256).contains(&value.len()) || !value.bytes().all(plain) {
        return Err(format!(
            "{shown:?} names no credential, and no placeholder either: those are 8 to 256 letters, digits and :_-./+=~"
        ));
    }
    Ok(Placeholder { variable: variable.to_owned(), value: value.to_owned() })
}

fn is_variable(name: &str) -> bool {
    let head = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    head && name.len() <= 128 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a text is the name of a credential, not a placeholder as a policy writes it. A text with the prefix `sk-` is
/// a placeholder: it has the shape of several providers' keys.
fn is_credential(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.starts_with("sk-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_text(text: &str) -> Result<Vec<(String, String)>, Vec<String>> {
        let pod = json!({"metadata": {"annotations": {pod::PLACEHOLDERS: text}}});
        Ok(read(&pod)?.into_iter().map(|found| (found.variable, found.value)).collect())
    }

    #[test]
    fn a_credentials_name_becomes_its_placeholder_and_another_text_is_one() {
        let found = read_text("A_KEY=anthropic, B_KEY=sk-ant-api03-agent,C=postern:other").unwrap();
        let expected =
            [("A_KEY", "postern:anthropic"), ("B_KEY", "sk-ant-api03-agent"), ("C", "postern:other")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(read_text("").unwrap(), []);
    }

    #[test]
    fn what_is_no_list_of_variables_is_said_so() {
        for text in ["A", "=a", "A-B=x", "A=", "A=Short", "A=$(SECRET_OF_MINE)", "A=x,A=y", "SSL_CERT_FILE=x"]
        {
            assert_eq!(read_text(text).unwrap_err().len(), 1, "{text}");
        }
    }
}
