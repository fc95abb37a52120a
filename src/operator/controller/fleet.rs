//! Judges what pods report: which enforce the revision, which drift, which must be deleted. Pure.

use std::time::{Duration, Instant};

/// How long a pod may be without the revision before an Event says so.
const DRIFT: Duration = Duration::from_mins(2);
/// How often, and for how long, a pod must report unproven interception before it is deleted.
const UNPROVEN_READS: u32 = 3;
const UNPROVEN_FOR: Duration = Duration::from_secs(10);
/// How often a pod is asked: soon after a change, when that takes long or its interception is unproven, and otherwise.
const EAGER: Duration = Duration::from_secs(1);
const PATIENT: Duration = Duration::from_secs(5);
const CALM: Duration = Duration::from_secs(20);
/// How long a pod is asked eagerly after a change.
const EAGERNESS: Duration = Duration::from_secs(30);

/// The metrics of a gateway that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GatewayAnswer {
    /// `postern_policy_info`.
    pub(super) revision: Option<String>,
    /// `postern_interception_proven`.
    pub(super) proven: Option<bool>,
    /// `postern_policy_unknown`: it cannot read the newest policies, and keeps those that it had.
    pub(super) unknown: bool,
}

/// What is known of one pod.
#[derive(Debug)]
pub(super) struct PodSight {
    answer: Option<GatewayAnswer>,
    asked: Option<Instant>,
    /// Since when it does not have the revision that it should have.
    behind: Option<(String, Instant)>,
    drift_told: bool,
    unproven: Option<(u32, Instant)>,
}

/// What a pod enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodState {
    Enforcing,
    /// It enforces the form of the policies for older gateways.
    Older,
    /// It cannot read the policies.
    Unknown,
    Behind,
    Drifting,
    Unproven,
    Unreachable,
}

/// What follows from a pod's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consequence {
    /// It has been without the revision for too long; once for each revision.
    Drift,
    /// Its agent may be talking past its gateway.
    Delete,
}

impl PodState {
    pub(super) const ALL: [Self; 7] = [
        Self::Enforcing,
        Self::Older,
        Self::Unknown,
        Self::Behind,
        Self::Drifting,
        Self::Unproven,
        Self::Unreachable,
    ];

    /// The word of the metric.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Enforcing => "enforcing",
            Self::Older => "older",
            Self::Unknown => "unknown",
            Self::Behind => "behind",
            Self::Drifting => "drifting",
            Self::Unproven => "unproven",
            Self::Unreachable => "unreachable",
        }
    }
}

impl PodSight {
    pub(super) fn new() -> Self {
        Self { answer: None, asked: None, behind: None, drift_told: false, unproven: None }
    }

    /// Whether the pod is due to be asked; `wanted` is the revision that it should enforce.
    pub(super) fn is_due(&self, wanted: &str, now: Instant) -> bool {
        let Some(asked) = self.asked else { return true };
        now >= asked + self.pace(wanted, now)
    }

    fn pace(&self, wanted: &str, now: Instant) -> Duration {
        if self.unproven.is_some() {
            return PATIENT;
        }
        match &self.behind {
            None if self.enforces(wanted) => CALM,
            Some((revision, since)) if revision == wanted && now >= *since + EAGERNESS => PATIENT,
            None | Some(_) => EAGER,
        }
    }

    /// When the pod was asked last.
    pub(super) fn asked(&self) -> Option<Instant> {
        self.asked
    }

    /// Records the pod's answer, or that it gave none.
    pub(super) fn learn(
        &mut self,
        wanted: &str,
        answer: Option<GatewayAnswer>,
        now: Instant,
    ) -> Option<Consequence> {
        self.asked = Some(now);
        self.unproven = match &answer {
            Some(GatewayAnswer { proven: Some(false), .. }) => {
                let (reads, since) = self.unproven.unwrap_or((0, now));
                Some((reads + 1, since))
            }
            // No answer is no evidence: the count begins anew.
            Some(_) | None => None,
        };
        self.answer = answer;
        if self.unproven.is_some_and(|(reads, since)| reads >= UNPROVEN_READS && now >= since + UNPROVEN_FOR)
        {
            self.unproven = None;
            return Some(Consequence::Delete);
        }
        if self.enforces(wanted) {
            (self.behind, self.drift_told) = (None, false);
            return None;
        }
        let since = match &self.behind {
            Some((revision, since)) if revision == wanted => *since,
            Some(_) | None => {
                (self.behind, self.drift_told) = (Some((wanted.to_owned(), now)), false);
                now
            }
        };
        let drifts = now >= since + DRIFT && !self.drift_told;
        self.drift_told |= drifts;
        drifts.then_some(Consequence::Drift)
    }

    /// The pod's state; `older` is the revision for gateways that cannot read the `wanted` one.
    pub(super) fn state(&self, wanted: &str, older: Option<&str>) -> PodState {
        // The first row that holds wins: unproven interception is worse than a wrong revision, and the revision for older
        // gateways counts before what a gateway says of itself.
        match &self.answer {
            None => PodState::Unreachable,
            Some(GatewayAnswer { proven: Some(false), .. }) => PodState::Unproven,
            Some(_) if self.enforces(wanted) => PodState::Enforcing,
            Some(_) if older.is_some_and(|older| self.enforces(older)) => PodState::Older,
            Some(GatewayAnswer { unknown: true, .. }) => PodState::Unknown,
            Some(_) if self.drift_told => PodState::Drifting,
            Some(_) => PodState::Behind,
        }
    }

    /// Whether two minutes have passed without the revision. A pod that does not answer counts as without it.
    pub(super) fn drifts(&self) -> bool {
        self.drift_told
    }

    /// The revision that it reported last.
    pub(super) fn revision(&self) -> Option<&str> {
        self.answer.as_ref()?.revision.as_deref()
    }

    fn enforces(&self, wanted: &str) -> bool {
        self.answer.as_ref().is_some_and(|answer| {
            answer.revision.as_deref().is_some_and(|reported| names(reported, wanted))
                && answer.proven != Some(false)
        })
    }
}

/// Whether a gateway reports the wanted revision. Gateways before 0.2 report 16 of its 32 digits.
fn names(reported: &str, wanted: &str) -> bool {
    const SHORT: usize = "sha256:".len() + 16;
    reported == wanted || reported.len() == SHORT && wanted.starts_with(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn says(revision: &str, proven: bool) -> Option<GatewayAnswer> {
        Some(GatewayAnswer { revision: Some(revision.to_owned()), proven: Some(proven), unknown: false })
    }

    #[test]
    fn a_pod_is_asked_each_second_until_it_enforces_and_then_rarely() {
        let start = Instant::now();
        let mut sight = PodSight::new();
        assert!(sight.is_due("new", start));
        sight.learn("new", says("old", true), start);
        assert_eq!(sight.state("new", None), PodState::Behind);
        assert!(sight.is_due("new", start + SECOND));
        sight.learn("new", says("new", true), start + SECOND);
        assert_eq!(sight.state("new", None), PodState::Enforcing);
        assert!(!sight.is_due("new", start + 5 * SECOND));
        assert!(sight.is_due("new", start + 21 * SECOND));
        assert!(sight.is_due("newer", start + 2 * SECOND), "a new revision is asked for at once");
    }

    #[test]
    fn a_gateway_that_is_older_than_its_operator_is_told_apart() {
        let mut sight = PodSight::new();
        sight.learn("new", says("old", true), Instant::now());
        assert_eq!(sight.state("new", Some("old")), PodState::Older);
        assert_eq!(sight.state("new", None), PodState::Behind);
        let unknown = says("older", true).map(|answer| GatewayAnswer { unknown: true, ..answer });
        sight.learn("new", unknown, Instant::now());
        assert_eq!(sight.state("new", Some("old")), PodState::Unknown);
    }

    #[test]
    fn drift_is_told_once_for_each_revision_after_two_minutes() {
        let start = Instant::now();
        let mut sight = PodSight::new();
        let mut told = Vec::new();
        for second in 0..300 {
            if sight.learn("new", says("old", true), start + second * SECOND) == Some(Consequence::Drift) {
                told.push(second);
            }
        }
        assert_eq!(told, [120]);
        assert_eq!(sight.state("new", None), PodState::Drifting);
        sight.learn("newer", says("old", true), start + 300 * SECOND);
        assert_eq!(sight.state("newer", None), PodState::Behind, "it has two minutes again");
    }

    #[test]
    fn an_older_gateway_that_tells_half_of_the_revision_enforces_it_and_a_shorter_text_does_not() {
        let start = Instant::now();
        let wanted = format!("sha256:{}", "0123456789abcdef".repeat(2));
        let state = |told: &str| {
            let mut sight = PodSight::new();
            sight.learn(&wanted, says(told, true), start);
            sight.state(&wanted, None)
        };
        assert_eq!(state(&wanted), PodState::Enforcing);
        assert_eq!(state("sha256:0123456789abcdef"), PodState::Enforcing);
        for told in ["sha256:0123456789abcdee", "sha256:01234567", "", &wanted[..wanted.len() - 1]] {
            assert_eq!(state(told), PodState::Behind, "{told}");
        }
    }

    #[test]
    fn a_pod_that_does_not_answer_drifts_too_and_is_never_deleted() {
        let start = Instant::now();
        let mut sight = PodSight::new();
        let told: Vec<Consequence> =
            (0..300).filter_map(|second| sight.learn("new", None, start + second * SECOND)).collect();
        assert_eq!(told, [Consequence::Drift]);
        assert_eq!(sight.state("new", None), PodState::Unreachable);
    }

    #[test]
    fn a_pod_that_stays_unproven_is_deleted_and_one_that_recovers_is_not() {
        let start = Instant::now();
        let unproven = |seconds: &[u32]| {
            let mut sight = PodSight::new();
            let read = |_, at: &u32| sight.learn("r", says("r", false), start + *at * SECOND);
            seconds.iter().fold(None, read)
        };
        assert_eq!(unproven(&[0, 5, 10]), Some(Consequence::Delete));
        assert_eq!(unproven(&[0, 1, 2]), None, "three reads within a moment are one");
        assert_eq!(unproven(&[0, 20]), None, "two reads are not three");

        let mut sight = PodSight::new();
        for (second, proven) in [(0, false), (5, false), (10, true), (15, false), (20, false)] {
            assert_eq!(sight.learn("r", says("r", proven), start + second * SECOND), None);
        }
        assert_eq!(sight.state("r", None), PodState::Unproven);
        assert_eq!(sight.learn("r", None, start + 30 * SECOND), None, "silence is no answer");
    }
}
