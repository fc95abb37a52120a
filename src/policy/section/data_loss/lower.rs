//! `dataLoss` of one policy, judged.

use std::collections::HashSet;

use super::written::{
    DetectorGroup, DetectorHome, LeastConfidence, SecretPattern, SecretValue, WrittenDataLoss,
};
use super::{LoweredDataLoss, NamedValue, SECTION, Stance};
use crate::dlp::{self, Confidence, Detectors};
use crate::policy::mistake::{self, Beside};
use crate::policy::pattern::Pattern;
use crate::yaml::field;

use super::super::credential::{WrittenSource, source};
use super::super::{Lowering, Problems, text};
use crate::problem::Problem;

/// How many patterns one policy has.
const MOST_PATTERNS: usize = 32;
/// How many values one policy names.
const MOST_VALUES: usize = 32;

const ALLOW: &str = "spec.dataLoss.allow";
const HOME: &str = "spec.dataLoss.home";
const PATTERNS: &str = "spec.dataLoss.patterns";
const VALUES: &str = "spec.dataLoss.values";

pub(super) fn lower(written: &WrittenDataLoss, lowering: &mut Lowering<'_>) -> LoweredDataLoss {
    let values = values(&written.values, lowering);
    let problems = &mut lowering.problems;
    let patterns = patterns(&written.patterns, problems);
    let mut known: HashSet<String> = Detectors::shared().iter().map(|detector| detector.id.clone()).collect();
    known.extend(patterns.iter().map(|pattern| pattern.id.clone()));
    known.insert(dlp::GATEWAY_CREDENTIAL.to_owned());
    known.extend(values.iter().map(|(_, value)| value.detector()));
    let mut allow = HashSet::new();
    for (number, value) in written.allow.iter().enumerate() {
        let path = field::item(ALLOW, number);
        detector(&path, &value.detector, &known, problems);
        let hash = problems.keep(&field::key(&path, "sha256"), hash(&value.sha256));
        allow.extend(hash.map(|hash| (value.detector.clone(), hash)));
    }
    let home = written.home.iter().enumerate();
    let home: Vec<_> =
        home.map(|(number, home)| self::home(&field::item(HOME, number), home, &known, problems)).collect();
    let has = |group| written.detectors.contains(&group);
    if !written.detectors.is_empty() && written.action.is_none() {
        problems.add("spec.dataLoss.action", "say what is done about the detectors that are named");
    }
    let stance = Stance {
        action: written.action.filter(|_| written.detectors.is_empty() || has(DetectorGroup::Secrets)),
        files: [DetectorGroup::CredentialFiles, DetectorGroup::ProtectedPaths]
            .map(|group| written.action.filter(|_| has(group))),
        least: least(written.confidence),
        allow,
        home,
    };
    LoweredDataLoss { stance, patterns, values }
}

fn values(written: &[SecretValue], lowering: &mut Lowering<'_>) -> Vec<(String, NamedValue)> {
    if written.len() > MOST_VALUES {
        lowering.problems.add(VALUES, format!("a policy names {MOST_VALUES} values at most"));
    }
    let mut names = HashSet::new();
    let mut made = Vec::new();
    for (number, value) in written.iter().take(MOST_VALUES).enumerate() {
        let path = field::item(VALUES, number);
        let name = field::key(&path, "name");
        let problems = &mut lowering.problems;
        if problems.keep(&name, text::rule_name(&value.name)).is_some() && !names.insert(&value.name) {
            problems.add(name, format!("the name `{}` is taken by another value", value.name));
        }
        let written = WrittenSource {
            secret_key_ref: value.secret_key_ref.as_ref(),
            from_env: value.from_env.as_ref(),
            from_file: value.from_file.as_ref(),
        };
        let Some(source) = source(&path, &written, lowering) else { continue };
        let (rule, place) = (lowering.owner.rule(SECTION), lowering.origin.locate(Problem::at(&path, "")));
        made.push((path, NamedValue { rule, name: value.name.clone(), source, place }));
    }
    made
}

fn least(written: Option<LeastConfidence>) -> Confidence {
    match written {
        Some(LeastConfidence::Medium) => Confidence::Medium,
        Some(LeastConfidence::High) | None => Confidence::High,
    }
}

/// Judges the name of a detector.
fn detector(path: &str, name: &str, known: &HashSet<String>, problems: &mut Problems) {
    if !known.contains(name) {
        let why = format!("{}: there is no such detector; `postern dlp list` has them", field::quoted(name));
        problems.add(field::key(path, "detector"), why);
    }
}

fn hash(text: &str) -> Result<[u8; 32], String> {
    let digits: Option<Vec<u8>> =
        (0..text.len() / 2).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    let is_whole = text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let bytes = digits.filter(|_| is_whole).and_then(|digits| digits.try_into().ok());
    bytes.ok_or_else(|| "expected the 64 hexadecimal digits of a SHA-256".to_owned())
}

fn home(
    path: &str,
    written: &DetectorHome,
    known: &HashSet<String>,
    problems: &mut Problems,
) -> (String, Vec<Pattern>) {
    detector(path, &written.detector, known, problems);
    let list = field::key(path, "hosts");
    if written.hosts.is_empty() {
        problems.add(list.as_str(), "name at least one host");
    }
    let read = |text: &String| {
        Pattern::parse(text).map_err(|error| mistake::of_host(text, &error, Beside::Destination))
    };
    let hosts = written.hosts.iter().enumerate();
    let hosts = hosts.filter_map(|(number, text)| problems.keep(&field::item(&list, number), read(text)));
    (written.detector.clone(), hosts.collect())
}

fn patterns(written: &[SecretPattern], problems: &mut Problems) -> Vec<dlp::Detector> {
    if written.len() > MOST_PATTERNS {
        problems.add(PATTERNS, format!("a policy has {MOST_PATTERNS} patterns at most"));
    }
    let mut names = HashSet::new();
    let mut made = Vec::new();
    for (number, pattern) in written.iter().take(MOST_PATTERNS).enumerate() {
        let path = field::item(PATTERNS, number);
        let name = field::key(&path, "name");
        if problems.keep(&name, text::rule_name(&pattern.name)).is_some() && !names.insert(&pattern.name) {
            problems.add(name, format!("the name `{}` is taken by another pattern", pattern.name));
        }
        let detector = dlp::pattern(&pattern.name, &pattern.regex, least(pattern.confidence));
        made.extend(problems.keep(&field::key(&path, "regex"), detector));
    }
    made
}
