//! Writes a draft as YAML whose comments are the evidence. Agents chose most of the texts in it: each is quoted where it
//! is more than a plain word.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::paths::{self, Learnt};
use super::{Evidence, Learner, Place, shown};
use crate::terminal;

/// A text as YAML: as it is where that is plain, else in quotes.
pub(super) fn scalar(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/*-".contains(&byte);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'/');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if begins && text.bytes().all(is_plain) && !words.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    terminal::json(&serde_json::Value::from(text).to_string()).into_owned()
}

/// The lines of a draft.
struct Draft {
    text: String,
    min: u64,
    names: BTreeSet<String>,
    /// What is not granted because of `min`, and closed places.
    refused: Vec<(String, String, u64)>,
}

pub(super) fn write(learner: &Learner, min: u64, notes: &[String]) -> String {
    let mut draft = Draft { text: String::new(), min, names: BTreeSet::new(), refused: Vec::new() };
    draft.head(learner, notes);
    draft.destinations(learner);
    draft.tools(learner);
    let refused =
        learner.refused.iter().map(|((what, why), evidence)| (what.clone(), why.clone(), evidence.count));
    draft.refused.extend(refused);
    draft.refused.sort();
    if !draft.refused.is_empty() {
        draft.text.push_str("# Not granted, and why:\n");
    }
    for (what, why, count) in std::mem::take(&mut draft.refused) {
        // Rules and methods are texts of the ledger's writer: none ends the comment.
        let (what, why) = (terminal::plain(&what), terminal::plain(&why));
        draft.line(&format!("#   {what}  {why} ({})", grouped(count)));
    }
    draft.text
}

impl Draft {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn head(&mut self, learner: &Learner, notes: &[String]) {
        let day = |time: &crate::event::Timestamp| time.to_string().chars().take(10).collect::<String>();
        let days = learner.span.as_ref().map(|(first, last)| match (day(first), day(last)) {
            (first, last) if first == last => format!(", {first}"),
            (first, last) => format!(", {first} to {last}"),
        });
        let pods = match learner.pods.len() {
            0 => String::new(),
            1 => " of 1 pod".to_owned(),
            pods => format!(" of {} pods", grouped(pods as u64)),
        };
        let days = days.unwrap_or_default();
        self.line(&format!(
            "# Drafted from {} events{pods}{days}. Read it: what an attacker did in that time is in it.",
            grouped(learner.events)
        ));
        if !learner.is_audited {
            self.line(
                "# Warning: no event is of a policy in Audit. What an enforced policy denied is not granted, and what \
                 would have come after it was never seen.",
            );
        }
        if learner.missing > 0 {
            self.line(&format!(
                "# Warning: {} events are missing, as the numbers of the others tell. What they were about is not granted.",
                grouped(learner.missing)
            ));
        }
        if learner.beyond > 0 {
            self.line(&format!(
                "# Warning: {} events were about too many different things to be kept.",
                grouped(learner.beyond)
            ));
        }
        for note in notes {
            self.line(&format!("# Warning: {}", terminal::plain(note)));
        }
        let mut namespaces = learner.namespaces.iter();
        let namespace = match (namespaces.next(), namespaces.next()) {
            (Some(namespace), None) if !namespace.is_empty() => format!(", namespace: {}", scalar(namespace)),
            _ => String::new(),
        };
        self.line("apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy");
        self.line(&format!(
            "metadata: {{name: learned{namespace}}}\nspec:\n  enforcement: Audit\n  toolDefault: Deny"
        ));
    }

    fn destinations(&mut self, learner: &Learner) {
        let mut is_first = true;
        for ((host, port), place) in &learner.places {
            let before = self.text.len();
            self.place(host, *port, place);
            if is_first && self.text.len() > before {
                self.text.insert_str(before, "  destinations:\n");
                is_first = false;
            }
        }
    }

    fn place(&mut self, host: &str, port: u16, place: &Place) {
        let what = || shown(host, port);
        let requests = place.requests.values().chain(&place.inference);
        let seen = requests.map(|evidence| evidence.count).fold(0_u64, u64::saturating_add);
        if let Some((why, closed)) = &place.closed {
            let connections = place.connections.map_or(0, |evidence| evidence.count);
            let count = seen.saturating_add(connections).saturating_add(*closed);
            self.refused.push((what(), why.clone(), count));
            return;
        }
        if seen == 0 {
            match place.connections {
                Some(_) if place.is_intercepted => {}
                Some(evidence) if evidence.count >= self.min => {
                    if port != 443 {
                        let why = "what is not TLS, which the events do not say: protocol: Opaque";
                        self.refused.push((what(), why.to_owned(), evidence.count));
                    }
                    self.rule(
                        host,
                        port,
                        "Tunnel",
                        &format!("{}, first {}", counted(evidence, "connection"), evidence.first),
                    );
                }
                Some(evidence) => self.seldom(what(), evidence),
                None => {}
            }
            return;
        }
        if let Some(evidence) = place.inference {
            if evidence.count >= self.min {
                let mut said = format!("{}, first {}", counted(evidence, "request"), evidence.first);
                let mut action = "Inspect";
                if place.is_routed() {
                    // A rule's name is a text of the ledger's writer: none ends the comment.
                    let routes: Vec<_> = place.routes.iter().map(|route| terminal::plain(route)).collect();
                    let _ =
                        write!(said, "; answered by routes, which are not drafted: {}", routes.join(", "));
                    action = "Inspect, reach: Routes";
                }
                self.rule(host, port, action, &said);
            } else {
                self.seldom(format!("{} inference", what()), evidence);
            }
        }
        self.endpoints(host, port, place);
    }

    fn endpoints(&mut self, host: &str, port: u16, place: &Place) {
        let learnt = paths::patterns(&place.requests);
        let (often, seldom): (Vec<Learnt>, Vec<Learnt>) =
            learnt.into_iter().partition(|learnt| learnt.evidence.count >= self.min);
        for learnt in seldom {
            let methods: Vec<String> = learnt.methods.into_iter().collect();
            let what = format!("{} {} {}", shown(host, port), methods.join(", "), scalar(&learnt.path));
            self.seldom(what, learnt.evidence);
        }
        if often.is_empty() {
            return;
        }
        let name = self.name(host, port);
        self.line(&format!("    - name: {name}\n      hosts: [{}]\n      ports: [{port}]", scalar(host)));
        self.line("      action: Inspect\n      endpoints:");
        for learnt in often {
            let methods: Vec<String> = learnt.methods.into_iter().collect();
            let values =
                if learnt.values > 1 { format!(", {} values for *", learnt.values) } else { String::new() };
            self.line(&format!(
                "        - {{methods: [{}], path: {}}}    # {}{values}, first {}",
                methods.join(", "),
                scalar(&learnt.path),
                counted(learnt.evidence, "request"),
                learnt.evidence.first
            ));
        }
    }

    fn rule(&mut self, host: &str, port: u16, action: &str, evidence: &str) {
        let name = self.name(host, port);
        self.line(&format!(
            "    - {{name: {name}, hosts: [{}], ports: [{port}], action: {action}}}    # {evidence}",
            scalar(host)
        ));
    }

    fn tools(&mut self, learner: &Learner) {
        let (often, seldom): (Vec<_>, Vec<_>) =
            learner.tools.iter().partition(|(_, evidence)| evidence.count >= self.min);
        for (name, evidence) in seldom {
            self.seldom(format!("the tool {}", scalar(name)), *evidence);
        }
        if often.is_empty() {
            return;
        }
        self.line("  tools:\n    - name: seen\n      action: Allow\n      tools:");
        for (name, evidence) in often {
            self.line(&format!(
                "        - {}    # {}, first {}",
                scalar(name),
                counted(*evidence, "call"),
                evidence.first
            ));
        }
    }

    fn seldom(&mut self, what: String, evidence: Evidence) {
        self.refused.push((what, "seen too seldom (--min)".to_owned(), evidence.count));
    }

    /// A name for a rule that no other rule has.
    fn name(&mut self, host: &str, port: u16) -> String {
        let mut name: String = host
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .take(50)
            .collect();
        name = name.trim_matches('-').to_owned();
        if port != 443 {
            let _ = write!(name, "-{port}");
        }
        let mut unique = name.clone();
        let mut number = 2;
        // `seen` is the rule about tools.
        while unique == "seen" || !self.names.insert(unique.clone()) {
            unique = format!("{name}-{number}");
            number += 1;
        }
        scalar(&unique)
    }
}

fn counted(evidence: Evidence, what: &str) -> String {
    let plural = if evidence.count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(evidence.count))
}

/// A number with commas: `18,204`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
