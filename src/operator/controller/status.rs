//! What a policy's status says, from what became of it in its namespaces. Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::fleet::State;
use super::policies::Reading;
use super::publish::{InForce, Reason, Refusal};
use super::report::Report;
use crate::api::status::Status;
use crate::policy::compile::Labels;
use crate::policy::selector::selects;

/// How many pods that do not enforce, or hosts that are left out, are listed.
const FEW: usize = 10;
/// How old a status may become that says what is so. Readers see by its age whether an operator still looks.
const RECHECK: SignedDuration = SignedDuration::from_mins(10);
/// The longest message of a condition; Kubernetes allows 32 KiB.
const LONGEST: usize = 8 << 10;

/// What became of a policy in one namespace.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) namespace: &'a str,
    pub(super) labels: &'a Labels,
    /// None where nothing was published there yet.
    pub(super) report: Option<&'a Report>,
    /// Why the namespace could not be brought up to date.
    pub(super) failure: Option<String>,
    pub(super) pods: Vec<Seen<'a>>,
    /// The names and labels of pods that have no gateway and should.
    pub(super) unguarded: Vec<(&'a str, &'a Labels)>,
}

/// A pod, and what is known of it.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) name: &'a str,
    pub(super) labels: &'a Labels,
    /// None where it was not asked yet.
    pub(super) state: Option<State>,
    /// Whether it has been without the revision for too long.
    pub(super) drifts: bool,
}

/// A condition before it has its times: whether it holds, why, and in words.
struct Word {
    holds: bool,
    reason: &'static str,
    message: String,
}

/// The pods that a policy selects.
#[derive(Default)]
struct Tally {
    selected: usize,
    enforcing: usize,
    drifting: bool,
    others: Vec<String>,
    /// Those without a gateway.
    unguarded: Vec<String>,
    /// Those of the others whose gateways do not know what the policies say.
    too_old: Vec<String>,
    /// What of the policy they do not know.
    beyond: BTreeSet<String>,
}

/// The status of a policy whose status is `before`. `places` are the namespaces that it is for and that are kept.
pub(super) fn status(reading: &Reading, places: &[&Place<'_>], before: &Status, now: Timestamp) -> Status {
    let refusals: Vec<(&str, &Refusal)> = places
        .iter()
        .filter_map(|place| Some((place.namespace, place.report?.refused.get(&reading.candidate.key)?)))
        .collect();
    let tally = tally(reading, places);
    let generation = Some(reading.generation);
    let condition = |type_: &str, word: Word| {
        let status = if word.holds { "True" } else { "False" };
        let known = before.conditions.iter().find(|one| one.type_ == type_ && one.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: word.reason.to_owned(),
            message: cut(word.message),
            observed_generation: generation,
            last_transition_time: known.map_or(Time(now), |one| one.last_transition_time.clone()),
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
    let status = Status {
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

/// The status with the time of this look, where it says something else than `before`, or has said the same for long.
fn checked(mut status: Status, before: &Status, now: Timestamp) -> Status {
    let is_old = |at: &Time| now.duration_since(at.0) >= RECHECK;
    if status != *before || status.checked_at.as_ref().is_none_or(is_old) {
        status.checked_at = Some(Time(now));
    }
    status
}

/// What Flux, Argo CD and `kubectl wait` look at: both of the others in one.
fn ready(accepted: &Word, programmed: &Word) -> Word {
    let told = if accepted.holds { programmed } else { accepted };
    Word { holds: accepted.holds && programmed.holds, reason: told.reason, message: told.message.clone() }
}

/// Says that nothing becomes of the policy until somebody changes it, by the convention of kstatus: a condition that is
/// there only while it holds.
fn stalled(accepted: &Word) -> Option<Word> {
    (!accepted.holds).then(|| Word {
        holds: true,
        reason: accepted.reason,
        message: accepted.message.clone(),
    })
}

fn accepted(reading: &Reading, refusals: &[(&str, &Refusal)]) -> Word {
    if let Err(problems) = &reading.candidate.read {
        let mut message = lines(problems.iter().map(|problem| place(&problem.path, &problem.message)));
        message.push_str(in_force(refusals));
        return Word { holds: false, reason: "Invalid", message };
    }
    let conflicts = || refusals.iter().filter(|(_, refusal)| refusal.reason == Reason::Conflict);
    if conflicts().next().is_none() {
        return Word { holds: true, reason: "Accepted", message: "The policy is valid.".to_owned() };
    }
    let told = conflicts().flat_map(|(namespace, refusal)| {
        refusal.problems.iter().map(move |problem| {
            format!("In namespace {namespace}: {}", place(&problem.path, &problem.message))
        })
    });
    let mut message = lines(told);
    message.push_str(
        "\nIt contradicts another policy: change or delete one of them, or let them select different pods.",
    );
    message.push_str(in_force(refusals));
    Word { holds: false, reason: "Conflict", message }
}

fn in_force(refusals: &[(&str, &Refusal)]) -> &'static str {
    let any = |state| refusals.iter().any(|(_, refusal)| refusal.in_force == state);
    match (any(InForce::AsWritten), any(InForce::LastGood)) {
        (true, _) => {
            "\nIt stays in force; gateways of pods that it contradicts another policy for keep what they have."
        }
        (false, true) => "\nIts last good version stays in force.",
        (false, false) => "\nNothing of it is in force.",
    }
}

fn programmed(
    reading: &Reading,
    places: &[&Place<'_>],
    refusals: &[(&str, &Refusal)],
    tally: &Tally,
) -> Word {
    let Some(mut word) = unpublished(reading, places, refusals) else { return enforced(places, tally) };
    if !tally.unguarded.is_empty() {
        let _ = write!(word.message, " {}{ANEW}", counted(tally));
    }
    word
}

/// Why the policy is not with the gateways as it is written, if it is not.
fn unpublished(reading: &Reading, places: &[&Place<'_>], refusals: &[(&str, &Refusal)]) -> Option<Word> {
    let no = |reason, message| Some(Word { holds: false, reason, message });
    let suffix = caveats(places);
    if reading.candidate.read.is_err()
        || refusals.iter().any(|(_, refusal)| refusal.in_force != InForce::AsWritten)
    {
        let message =
            format!("The policy is not in force as it is written: it is not accepted.{}", in_force(refusals));
        return no("NotAccepted", message);
    }
    for Place { namespace, report, failure, .. } in places.iter().copied() {
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
fn enforced(places: &[&Place<'_>], tally: &Tally) -> Word {
    let no = |reason, message| Word { holds: false, reason, message };
    let suffix = caveats(places);
    let Tally { selected, enforcing, drifting, too_old, .. } = tally;
    if *selected == 0 {
        let why = if places.is_empty() {
            "no namespace that it is for has injected pods, or is labelled postern.dev/injection=enabled"
        } else {
            "it selects no injected pod"
        };
        let message = format!("The policy is published, and no pod enforces it: {why}.{suffix}");
        return Word { holds: true, reason: "NoPods", message };
    }
    let older = if too_old.is_empty() { String::new() } else { format!(" {}", too_old_words(tally)) };
    let message = format!("{}{suffix}{older}", counted(tally));
    match (enforcing == selected, drifting) {
        _ if !tally.unguarded.is_empty() => no("Unguarded", format!("{message}{ANEW}")),
        _ if !too_old.is_empty() => no("GatewayTooOld", message),
        (true, _) => Word { holds: true, reason: "Programmed", message },
        (false, true) => no("Drift", format!("{message} Others have not for two minutes.")),
        (false, false) => no("Pending", message),
    }
}

/// What to do about pods without a gateway.
const ANEW: &str = " A pod without a gateway reaches any address: start it anew (kubectl rollout restart).";

/// How many pods enforce, and which have no gateway.
fn counted(tally: &Tally) -> String {
    let mut message = format!("{} of {} pods enforce the newest revision", tally.enforcing, tally.selected);
    if !tally.unguarded.is_empty() {
        let _ = write!(message, ", {} unguarded: {}", tally.unguarded.len(), some(&tally.unguarded));
    }
    message + "."
}

/// Which pods have gateways that are too old for the policy, and what those do not know.
fn too_old_words(tally: &Tally) -> String {
    let beyond: Vec<String> = tally.beyond.iter().cloned().collect();
    let what = if beyond.is_empty() { "all that the policies say".to_owned() } else { some(&beyond) };
    format!(
        "The gateways of these pods are older than the operator and do not know {what}; they have what \
         they know of it, and of what it opens no more than before: {}. Start them anew.",
        some(&tally.too_old)
    )
}

/// What is to be known of the CAs of these namespaces, each sentence once.
fn caveats(places: &[&Place<'_>]) -> String {
    let all: BTreeSet<&String> =
        places.iter().filter_map(|place| place.report).flat_map(|report| &report.caveats).collect();
    all.iter().map(|caveat| format!(" {caveat}.")).collect()
}

fn tally(reading: &Reading, places: &[&Place<'_>]) -> Tally {
    let mut tally = Tally::default();
    for place in places {
        let in_force = place.report.and_then(|report| report.in_force.get(&reading.candidate.key));
        let written = reading.candidate.read.as_ref().ok().map(|document| &document.spec.pod_selector);
        let Some(selector) = written.or(in_force) else { continue };
        for pod in place.pods.iter().filter(|pod| selects(selector.as_ref(), pod.labels)) {
            tally.selected += 1;
            let is_older = pod.state == Some(State::Older);
            let beyond = place.report.and_then(|report| report.beyond.get(&reading.candidate.key));
            let is_enforced = pod.state == Some(State::Enforcing) || is_older && beyond.is_none();
            if is_enforced && in_force.is_some() {
                tally.enforcing += 1;
            } else {
                let name = format!("{}/{}", place.namespace, pod.name);
                if is_older || pod.state == Some(State::Unknown) {
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

fn lines(told: impl Iterator<Item = String>) -> String {
    told.collect::<Vec<_>>().join("\n")
}

/// A message that Kubernetes takes.
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
