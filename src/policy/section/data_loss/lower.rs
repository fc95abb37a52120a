//! `dataLoss` of one policy, judged.

use std::collections::HashSet;

use super::written::{
    DetectorGroup, DetectorHome, FindingAction, LeastConfidence, SecretPattern, WrittenDataLoss,
};
use super::{LoweredDataLoss, Stance};
use crate::dlp::{self, Confidence, Detectors};
use crate::policy::mistake::{self, Beside};
use crate::policy::pattern::Pattern;
use crate::yaml::field;

use super::super::{Problems, text};

/// How many patterns one policy has.
const MOST_PATTERNS: usize = 32;

const ALLOW: &str = "spec.dataLoss.allow";
const HOME: &str = "spec.dataLoss.home";
const PATTERNS: &str = "spec.dataLoss.patterns";

pub(super) fn lower(written: &WrittenDataLoss, problems: &mut Problems) -> LoweredDataLoss {
    let patterns = patterns(&written.patterns, problems);
    let mut known: HashSet<String> = Detectors::shared().iter().map(|detector| detector.id.clone()).collect();
    known.extend(patterns.iter().map(|pattern| pattern.id.clone()));
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
    let acts = matches!(written.action, Some(FindingAction::Deny | FindingAction::Redact));
    let stance = Stance {
        action: written.action.filter(|_| written.detectors.is_empty() || has(DetectorGroup::Secrets)),
        files: [DetectorGroup::CredentialFiles, DetectorGroup::ProtectedPaths]
            .map(|group| acts && has(group)),
        least: least(written.confidence),
        allow,
        home,
    };
    LoweredDataLoss { stance, patterns }
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
