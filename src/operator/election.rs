//! Elects who runs the controller: a Lease in Postern's namespace, and a term that ends at once when the Lease is lost.

use std::future::Future;
use std::time::Duration;

use kube::{Client, Config};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError, LeaseParams};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::drain::Drain;

/// Seconds that a Lease holds after its last renewal, and so the time of a takeover after a leader was killed.
const DURATION: u64 = 15;
/// Seconds before its end at which the Lease is renewed: every 4 s.
const GRACE: u64 = 11;
/// How long connecting may take, and how long an answer.
const REQUEST: Duration = Duration::from_millis(1_250);
/// The distance of attempts after an error, and for how long they go on. With one more request before and after, and
/// with [`CUT`], that is less than [`GRACE`]: a leader that cannot renew has stopped before another one may begin.
const AGAIN: Duration = Duration::from_millis(500);
const TOLERANCE: Duration = Duration::from_secs(3);
/// Errors further apart than this have a success between them: attempts follow each other sooner, renewals later.
const APART: Duration = Duration::from_millis(3_750);
/// How long the controller's tasks may take to end when the Lease is lost, and when it is released.
const CUT: Duration = Duration::from_millis(500);
const GIVEN_UP: Duration = Duration::from_secs(5);
/// How long a candidate waits after it lost, or could not ask.
const REST: Duration = Duration::from_secs(2);

/// A candidate of the election, and the Lease that it stands for.
#[derive(Debug, Clone)]
pub struct LeaseCandidate {
    pub namespace: String,
    pub lease: String,
    /// The name of the process's pod, for people.
    pub name: String,
    /// Unique per process, even in the same pod: a restarted process must not believe that it still holds the Lease.
    pub mark: String,
}

/// A client for the Lease alone, whose timeouts are shorter than the Lease.
///
/// # Errors
/// Fails if the configuration cannot be used.
pub fn client(mut config: Config) -> Result<Client, kube::Error> {
    config.connect_timeout = Some(REQUEST);
    config.read_timeout = Some(REQUEST);
    config.write_timeout = Some(REQUEST);
    config.reset_reader_on_write = true;
    config.default_retry = false;
    Client::try_from(config)
}

/// Stands for election until the drain begins. While it leads, `leads` is true and `controller` runs in a drain of its
/// own, which ends with the term. If the controller ends by itself, the term ends too.
pub async fn run<C, F>(
    client: Client,
    candidate: LeaseCandidate,
    controller: C,
    leads: watch::Sender<bool>,
    drain: Drain,
) where
    C: Fn(Drain) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    while !drain.is_stopping() {
        let elected = tokio::select! {
            elected = elected(&client, &candidate) => elected,
            () = drain.stopping() => return,
        };
        match elected {
            Ok(lease) => {
                tracing::info!(candidate = candidate.name, "this replica leads: it runs the controller");
                let term = Term::begin(&controller);
                leads.send_replace(true);
                serve(&lease, term, &leads, &drain).await;
            }
            Err(error) => tracing::warn!(%error, "the election for the controller cannot be held"),
        }
        tokio::select! {
            () = tokio::time::sleep(REST) => {}
            () = drain.stopping() => {}
        }
    }
}

/// Resolves when the candidate holds the Lease.
async fn elected(client: &Client, candidate: &LeaseCandidate) -> Result<LeaseManager, LeaseManagerError> {
    let LeaseCandidate { namespace, lease, name, mark } = candidate;
    let parameters = LeaseParams::new(format!("{name}_{mark}"), DURATION, GRACE)
        .with_field_manager(format!("postern-operator-{mark}"));
    let builder = LeaseManagerBuilder::new(client.clone(), lease).with_namespace(namespace);
    let manager = builder.with_parameters(parameters).build().await?;
    while !manager.changed().await? {}
    Ok(manager)
}

/// A term of leadership, during which the controller runs.
struct Term {
    drain: Drain,
    /// Resolves when the controller ended, also by a panic.
    ended: oneshot::Receiver<()>,
}

impl Term {
    fn begin<C, F>(controller: &C) -> Self
    where
        C: Fn(Drain) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let (drain, (ending, ended)) = (Drain::default(), oneshot::channel());
        let (running, cut) = (controller(drain.clone()), drain.clone());
        drain.spawn(async move {
            tokio::select! {
                () = running => {}
                () = cut.aborting() => {}
            }
            // A panic drops it too.
            drop(ending);
        });
        Self { drain, ended }
    }
}

/// Why a term ends.
#[derive(Debug)]
enum TermEnd {
    Lost(String),
    ControllerEnded,
    Stopping,
}

/// Leads until the Lease is lost or not needed any more; then releases it, so that another replica can lead at once.
async fn serve(lease: &LeaseManager, mut term: Term, leads: &watch::Sender<bool>, drain: &Drain) {
    let end = hold(lease, &mut term.ended, drain).await;
    leads.send_replace(false);
    let lost = matches!(end, TermEnd::Lost(_));
    match &end {
        TermEnd::Lost(why) => tracing::warn!(why, "this replica leads no more: the controller stops"),
        TermEnd::ControllerEnded => tracing::error!("the controller ended: another replica may run it"),
        TermEnd::Stopping => tracing::info!("this replica gives up leading"),
    }
    term.drain.shut_down(if lost { CUT } else { GIVEN_UP }).await;
    if lost {
        return;
    }
    // If this fails, the Lease runs out by itself.
    match tokio::time::timeout(3 * REQUEST, lease.release()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the Lease could not be released"),
        Err(_) => tracing::warn!("the Lease could not be released in time"),
    }
}

async fn hold(lease: &LeaseManager, ended: &mut oneshot::Receiver<()>, drain: &Drain) -> TermEnd {
    let mut failures = Failures::default();
    loop {
        tokio::select! {
            changed = lease.changed() => match changed {
                Ok(true) => {}
                Ok(false) => return TermEnd::Lost("another replica holds the Lease".to_owned()),
                Err(error) if failures.exhaust(Instant::now()) => {
                    return TermEnd::Lost(format!("the Lease cannot be renewed ({error})"));
                }
                Err(_) => tokio::time::sleep(AGAIN).await,
            },
            _ = &mut *ended => return TermEnd::ControllerEnded,
            () = drain.stopping() => return TermEnd::Stopping,
        }
    }
}

/// Failed attempts without a success between them: the first and the last.
#[derive(Debug, Default)]
struct Failures(Option<(Instant, Instant)>);

impl Failures {
    /// Counts one more; returns whether the attempts are exhausted.
    fn exhaust(&mut self, now: Instant) -> bool {
        let first = match self.0 {
            Some((first, last)) if now.duration_since(last) < APART => first,
            Some(_) | None => now,
        };
        self.0 = Some((first, now));
        now.duration_since(first) >= TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_that_cannot_renew_has_stopped_before_the_lease_runs_out() {
        let request = 2 * REQUEST;
        let cut = CUT + Duration::from_secs(1);
        assert!(request + TOLERANCE + AGAIN + request + cut < Duration::from_secs(GRACE));
        assert!(AGAIN + request < APART && APART < Duration::from_secs(DURATION - GRACE));
        assert!(GIVEN_UP + cut < Duration::from_secs(GRACE));
    }

    #[test]
    fn attempts_that_follow_each_other_are_borne_for_a_while() {
        let (start, mut failures) = (Instant::now(), Failures::default());
        let at = |millis| start + Duration::from_millis(millis);
        assert!(!failures.exhaust(at(0)));
        assert!(!failures.exhaust(at(1_500)));
        assert!(failures.exhaust(at(3_000)));
    }

    #[test]
    fn a_renewal_between_them_makes_a_failure_the_first_again() {
        let (start, mut failures) = (Instant::now(), Failures::default());
        for minute in 0..5 {
            assert!(!failures.exhaust(start + Duration::from_secs(60 * minute)));
        }
    }

    #[tokio::test]
    async fn a_term_whose_controller_panics_is_known_to_have_ended() {
        let term = Term::begin(&|_drain| async { panic!("a bug") });
        assert!(term.ended.await.is_err());
    }

    #[tokio::test]
    async fn a_controller_that_does_not_stop_is_cut() {
        let mut term = Term::begin(&|_drain| std::future::pending());
        assert!(term.ended.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        assert!(!term.drain.shut_down(Duration::from_millis(1)).await);
        assert!(term.ended.await.is_err());
    }
}
