//! Decides anew about what detection found in a request, as far as its event tells.

use crate::decision::Decision;
use crate::detection::place_of;
use crate::dlp::Confidence;
use crate::event::{Event, Finding};
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::data_loss::{AskedFinding, FindingAction, FindingPlace, FindingVerdict, NamedFile};

/// The decision about the findings of a request; none where they change nothing.
///
/// # Errors
/// Why it cannot be said.
pub(super) fn judge(policy: &Policy, event: &Event) -> Result<Option<Decision>, String> {
    let mut recorded = None;
    for finding in &event.dlp {
        let verdicts: Vec<FindingVerdict> = places(finding, event.credential.is_some())
            .iter()
            .map(|place| settled(policy, event, finding, *place))
            .collect::<Result<_, _>>()?;
        let Some((first, others)) = verdicts.split_first() else { continue };
        let denies = |verdict: &FindingVerdict| verdict.action == FindingAction::Deny;
        if others.iter().any(|other| denies(other) != denies(first)) {
            return Err(format!(
                "it depends on where exactly {} stood in {}",
                finding.detector, finding.location
            ));
        }
        match &first.decision {
            Some(decision) if decision.denies() => return Ok(Some(decision.clone())),
            decision => recorded = recorded.or_else(|| decision.clone()),
        }
    }
    Ok(recorded)
}

fn settled(
    policy: &Policy,
    event: &Event,
    finding: &Finding,
    place: FindingPlace,
) -> Result<FindingVerdict, String> {
    let files = [NamedFile::Credential, NamedFile::Protected];
    if let Some(file) = files.into_iter().find(|file| file.detector() == finding.detector) {
        return Ok(policy.judge_file(file, place));
    }
    let allowed = FindingVerdict { action: FindingAction::Allow, decision: None };
    let Some(detectors) = policy.detectors() else { return Ok(allowed) };
    let Some(detector) = detectors.iter().find(|detector| detector.id == finding.detector) else {
        return Err(format!("{} is a detector that the policy does not have", finding.detector));
    };
    let host = event.destination.as_ref().and_then(|to| Host::parse(&to.host).ok());
    let host = host.ok_or_else(|| "its host cannot be read".to_owned())?;
    let confidence = [Confidence::Low, Confidence::Medium, Confidence::High]
        .into_iter()
        .find(|confidence| confidence.as_str() == finding.confidence)
        .ok_or_else(|| "it says a confidence that is not known".to_owned())?;
    let known = finding.sha256.as_deref().and_then(hash);
    if known.is_none() && policy.allows_values_of(&detector.id) {
        return Err(format!(
            "values of {} are allowed by their hash, which the event does not have",
            detector.id
        ));
    }
    let sha256 = &known.unwrap_or_default();
    Ok(policy.judge_finding(&AskedFinding { detector, confidence, sha256, place, host: &host }))
}

/// The places that a finding's event may mean.
fn places(finding: &Finding, is_vouched: bool) -> Vec<FindingPlace> {
    let location = finding.location.as_str();
    if let Some(name) = location.strip_prefix("header/").or_else(|| location.strip_prefix("query/")) {
        return match name.strip_prefix('#') {
            Some(_) => vec![FindingPlace::Carrier, FindingPlace::Rest],
            None => vec![place_of(name)],
        };
    }
    match (location, finding.role.as_deref()) {
        ("path" | "host", _) => vec![FindingPlace::Carrier],
        (_, Some("Assistant" | "ToolCall")) => vec![FindingPlace::OfModel { is_vouched }],
        // What was replaced is text.
        (_, Some(_)) if finding.action == FindingAction::Redact.as_str() => vec![FindingPlace::Told],
        (_, Some("System" | "User" | "ToolResult" | "ToolDefinition")) => {
            vec![FindingPlace::Told, FindingPlace::Rest]
        }
        (_, Some(_) | None) => vec![FindingPlace::Rest],
    }
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let digit = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..text.len() / 2).map(digit).collect::<Option<_>>()?;
    bytes.try_into().ok()
}
