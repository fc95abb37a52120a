//! Computes a policy's status from its state in all of its namespaces. Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::fleet::PodState;
use super::policies::PolicyReading;
use super::publish::{FallbackVersion, PolicyRefusal, RefusalReason};
use super::report::NamespaceReport;
use crate::api::status::PolicyStatus;
use crate::policy::compile::Labels;
use crate::policy::selector::selects;

/// How many pods that do not enforce it, or hosts that are left out, are listed.
const FEW: usize = 10;
/// How old an unchanged status may become. Readers see by `checkedAt` whether an operator still checks.
const RECHECK: SignedDuration = SignedDuration::from_mins(10);
/// The longest message of a condition; Kubernetes allows 32 KiB.
const LONGEST: usize = 8 << 10;

/// What the statuses of policies need to know about one namespace.
#[derive(Debug)]
pub(super) struct NamespaceView<'a> {
    pub(super) namespace: &'a str,
    pub(super) labels: &'a Labels,
    /// None if nothing was published there yet.
    pub(super) report: Option<&'a NamespaceReport>,
    /// Why the namespace could not be brought up to date.
    pub(super) failure: Option<String>,
    pub(super) pods: Vec<PodView<'a>>,
    /// The names and labels of pods that have no gateway and should.
    pub(super) unguarded: Vec<(&'a str, &'a Labels)>,
}

/// A pod and its state.
#[derive(Debug)]
pub(super) struct PodView<'a> {
    pub(super) name: &'a str,
    pub(super) labels: &'a Labels,
    /// None if it was not asked yet.
    pub(super) state: Option<PodState>,
    /// Whether it has been without the revision for too long.
    pub(super) drifts: bool,
}

/// A condition without its times.
struct ConditionDraft {
    holds: bool,
    reason: &'static str,
    message: String,
}

/// The pods that a policy selects.
#[derive(Default)]
struct PodTally {
    selected: usize,
    enforcing: usize,
    drifting: bool,
    others: Vec<String>,
    /// Selected pods without a gateway.
    unguarded: Vec<String>,
    /// Pods among the others whose gateways cannot read the policies.
    too_old: Vec<String>,
    /// The fields of the policy that those do not know.
    beyond: BTreeSet<String>,
}

/// The next status of a policy, after `before`. `places` are the kept namespaces that it is for.
pub(super) fn status(
    reading: &PolicyReading,
    places: &[&NamespaceView<'_>],
    before: &PolicyStatus,
    now: Timestamp,
) -> PolicyStatus {
    let refusals: Vec<(&str, &PolicyRefusal)> = places
        .iter()
        .filter_map(|place| Some((place.namespace, place.report?.refused.get(&reading.candidate.key)?)))
        .collect();
    let tally = tally(reading, places);
    let generation = Some(reading.generation);
    let condition = |type_: &str, word: ConditionDraft| {
        let status = if word.holds { "True" } else { "False" };
        let known = before.conditions.iter().find(|old| old.type_ == type_ && old.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: word.reason.to_owned(),
            message: cut(word.message),
            observed_generation: generation,
            last_transition_time: known.map_or(Time(now), |old| old.last_transition_time.clone()),
        }
    };
    let accepted = accepted(reading, &refusals);
    let programmed = programmed(reading, places, &refusals, &tally);
    let (ready, stalled) = (ready(&accepted, &programmed), stalled(&accepted));
    let mut conditions =
        vec![condition("Accepted", accepted), condition("Programmed", programmed), condition("Ready", ready)];
    conditions.extend(stalled.map(|word| condition("Stalled", word)));
    let few = |pods: Vec<String>| if pods.len() <= FEW { pods } else { Vec::new() };
    let mut enforcing = format!("{}/{}", tally.enforcing, tally.selected);
    if !tally.unguarded.is_empty() {
        let _ = write!(enforcing, ", {} unguarded", tally.unguarded.len());
    }
    let status = PolicyStatus {
        observed_generation: generation,
        conditions,
        selected_pods: count(tally.selected),
        enforcing_pods: count(tally.enforcing),
        enforcing,
        not_enforcing: few(tally.others),
        unguarded_pods: count(tally.unguarded.len()),
        unguarded: few(tally.unguarded),
        revision: reading.namespace.as_ref().and_then(|_| Some(places.first()?.report?.revision.clone())),
        checked_at: before.checked_at.clone(),
    };
    checked(status, before, now)
}

/// Sets `checkedAt` to now if the status has changed, or has been the same for long.
fn checked(mut status: PolicyStatus, before: &PolicyStatus, now: Timestamp) -> PolicyStatus {
    let is_old = |at: &Time| now.duration_since(at.0) >= RECHECK;
    if status != *before || status.checked_at.as_ref().is_none_or(is_old) {
        status.checked_at = Some(Time(now));
    }
    status
}

/// The condition that Flux, Argo CD and `kubectl wait` read: both of the others in one.
fn ready(accepted: &ConditionDraft, programmed: &ConditionDraft) -> ConditionDraft {
    let deciding = if accepted.holds { programmed } else { accepted };
    let holds = accepted.holds && programmed.holds;
    ConditionDraft { holds, reason: deciding.reason, message: deciding.message.clone() }
}

/// The kstatus condition that says that somebody must change the policy. By that convention it exists only while it
/// holds.
fn stalled(accepted: &ConditionDraft) -> Option<ConditionDraft> {
    (!accepted.holds).then(|| ConditionDraft {
        holds: true,
        reason: accepted.reason,
        message: accepted.message.clone(),
    })
}

fn accepted(reading: &PolicyReading, refusals: &[(&str, &PolicyRefusal)]) -> ConditionDraft {
    if let Err(problems) = &reading.candidate.read {
        let mut message = lines(problems.iter().map(|problem| place(&problem.path, &problem.message)));
        message.push_str(in_force(refusals));
        return ConditionDraft { holds: false, reason: "Invalid", message };
    }
    let conflicts = || refusals.iter().filter(|(_, refusal)| refusal.reason == RefusalReason::Conflict);
    if conflicts().next().is_none() {
        return ConditionDraft {
            holds: true,
            reason: "Accepted",
            message: "The policy is valid.".to_owned(),
        };
    }
    let sentences = conflicts().flat_map(|(namespace, refusal)| {
        refusal.problems.iter().map(move |problem| {
            format!("In namespace {namespace}: {}", place(&problem.path, &problem.message))
        })
    });
    let mut message = lines(sentences);
    message.push_str(
        "\nIt contradicts another policy: change or delete one of them, or let them select different pods.",
    );
    message.push_str(in_force(refusals));
    ConditionDraft { holds: false, reason: "Conflict", message }
}

fn in_force(refusals: &[(&str, &PolicyRefusal)]) -> &'static str {
    let any = |state| refusals.iter().any(|(_, refusal)| refusal.in_force == state);
    match (any(FallbackVersion::AsWritten), any(FallbackVersion::LastGood)) {
        (true, _) => {
            "\nIt stays in force; gateways of pods that it contradicts another policy for keep what they have."
        }
        (false, true) => "\nIts last good version stays in force.",
        (false, false) => "\nNothing of it is in force.",
    }
}

fn programmed(
    reading: &PolicyReading,
    places: &[&NamespaceView<'_>],
    refusals: &[(&str, &PolicyRefusal)],
    tally: &PodTally,
) -> ConditionDraft {
    let Some(mut word) = unpublished(reading, places, refusals) else { return enforced(places, tally) };
    if !tally.unguarded.is_empty() {
        let _ = write!(word.message, " {}{ANEW}", counted(tally));
    }
    word
}

/// Why gateways do not have the policy as it is written, if so.
fn unpublished(
    reading: &PolicyReading,
    places: &[&NamespaceView<'_>],
    refusals: &[(&str, &PolicyRefusal)],
) -> Option<ConditionDraft> {
    let no = |reason, message| Some(ConditionDraft { holds: false, reason, message });
    let suffix = caveats(places);
    if reading.candidate.read.is_err()
        || refusals.iter().any(|(_, refusal)| refusal.in_force != FallbackVersion::AsWritten)
    {
        let message =
            format!("The policy is not in force as it is written: it is not accepted.{}", in_force(refusals));
        return no("NotAccepted", message);
    }
    for NamespaceView { namespace, report, failure, .. } in places.iter().copied() {
        if let Some(failure) = failure {
            return no("ReconcileFailed", format!("In namespace {namespace}: {failure}. It is tried again."));
        }
        let Some(report) = report else {
            return no("Pending", format!("In namespace {namespace}: not published yet."));
        };
        if let Some(trouble) = &report.trouble {
            return no(trouble.reason, format!("In namespace {namespace}: {}.", trouble.message));
        }
        if let Some(missing) = report.credentials.get(&reading.candidate.key) {
            return no("CredentialMissing", format!("In namespace {namespace}: {}.", missing.join("; ")));
        }
        if let Some(hosts) = report.left_out.get(&reading.candidate.key) {
            let message = format!(
                "In namespace {namespace}: these hosts are denied, since the namespace's CA has no room for them: {}.\
                 {suffix}",
                some(hosts)
            );
            return no("HostsLeftOut", message);
        }
    }
    None
}

/// How many of the pods enforce a policy that was published.
fn enforced(places: &[&NamespaceView<'_>], tally: &PodTally) -> ConditionDraft {
    let no = |reason, message| ConditionDraft { holds: false, reason, message };
    let suffix = caveats(places);
    let PodTally { selected, enforcing, drifting, too_old, .. } = tally;
    if *selected == 0 {
        let why = if places.is_empty() {
            "no namespace that it is for has injected pods, or is labelled postern.dev/injection=enabled"
        } else {
            "it selects no injected pod"
        };
        let message = format!("The policy is published, and no pod enforces it: {why}.{suffix}");
        return ConditionDraft { holds: true, reason: "NoPods", message };
    }
    let older = if too_old.is_empty() { String::new() } else { format!(" {}", too_old_words(tally)) };
    let message = format!("{}{suffix}{older}", counted(tally));
    // The worst comes first: no gateway at all, then one that cannot read the policy, then one that is late.
    match (enforcing == selected, drifting) {
        _ if !tally.unguarded.is_empty() => no("Unguarded", format!("{message}{ANEW}")),
        _ if !too_old.is_empty() => no("GatewayTooOld", message),
        (true, _) => ConditionDraft { holds: true, reason: "Programmed", message },
        (false, true) => no("Drift", format!("{message} Others have not for two minutes.")),
        (false, false) => no("Pending", message),
    }
}

/// What to do about pods without a gateway.
const ANEW: &str = " A pod without a gateway reaches any address: start it anew (kubectl rollout restart).";

/// How many pods enforce, and which have no gateway.
fn counted(tally: &PodTally) -> String {
    let mut message = format!("{} of {} pods enforce the newest revision", tally.enforcing, tally.selected);
    if !tally.unguarded.is_empty() {
        let _ = write!(message, ", {} unguarded: {}", tally.unguarded.len(), some(&tally.unguarded));
    }
    message + "."
}

/// Which pods have gateways that are too old for the policy, and what those do not know.
fn too_old_words(tally: &PodTally) -> String {
    let beyond: Vec<String> = tally.beyond.iter().cloned().collect();
    let what = if beyond.is_empty() { "all that the policies say".to_owned() } else { some(&beyond) };
    format!(
        "The gateways of these pods are older than the operator and do not know {what}; they have what \
         they know of it, and of what it opens no more than before: {}. Start them anew.",
        some(&tally.too_old)
    )
}

/// The caveats about the CAs of these namespaces, each sentence once.
fn caveats(places: &[&NamespaceView<'_>]) -> String {
    let caveats: BTreeSet<&String> =
        places.iter().filter_map(|place| place.report).flat_map(|report| &report.caveats).collect();
    caveats.iter().map(|caveat| format!(" {caveat}.")).collect()
}

fn tally(reading: &PolicyReading, places: &[&NamespaceView<'_>]) -> PodTally {
    let mut tally = PodTally::default();
    for place in places {
        let in_force = place.report.and_then(|report| report.in_force.get(&reading.candidate.key));
        let written = reading.candidate.read.as_ref().ok().map(|document| &document.spec.pod_selector);
        let Some(selector) = written.or(in_force) else { continue };
        for pod in place.pods.iter().filter(|pod| selects(selector.as_ref(), pod.labels)) {
            tally.selected += 1;
            let is_older = pod.state == Some(PodState::Older);
            let beyond = place.report.and_then(|report| report.beyond.get(&reading.candidate.key));
            let is_enforced = pod.state == Some(PodState::Enforcing) || is_older && beyond.is_none();
            if is_enforced && in_force.is_some() {
                tally.enforcing += 1;
            } else {
                let name = format!("{}/{}", place.namespace, pod.name);
                if is_older || pod.state == Some(PodState::Unknown) {
                    tally.too_old.push(name.clone());
                    tally.beyond.extend(beyond.into_iter().flatten().cloned());
                }
                tally.drifting |= pod.drifts;
                tally.others.push(name);
            }
        }
        for (name, _) in place.unguarded.iter().filter(|(_, labels)| selects(selector.as_ref(), labels)) {
            tally.selected += 1;
            tally.unguarded.push(format!("{}/{name}", place.namespace));
        }
    }
    tally.others.sort();
    tally.unguarded.sort();
    tally.too_old.sort();
    tally
}

/// A problem with its field.
fn place(path: &str, message: &str) -> String {
    if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") }
}

/// The first few of many.
fn some(hosts: &[String]) -> String {
    let shown = hosts.iter().take(FEW).map(String::as_str).collect::<Vec<_>>().join(", ");
    match hosts.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn lines(sentences: impl Iterator<Item = String>) -> String {
    sentences.collect::<Vec<_>>().join("\n")
}

/// Cuts a message to the length that is kept in a condition.
fn cut(mut message: String) -> String {
    if message.len() > LONGEST {
        message.truncate(message.floor_char_boundary(LONGEST));
        // Writing to a String cannot fail.
        let _ = write!(message, " … (cut)");
    }
    message
}

fn count(pods: usize) -> i64 {
    i64::try_from(pods).unwrap_or(i64::MAX)
}
