//! Elects who runs the controller: a Lease in Postern's namespace, and a term that ends at once when the Lease is lost.

use std::future::Future;
use std::time::Duration;

use kube::{Client, Config};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError, LeaseParams};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::drain::Drain;

/// Seconds that a Lease holds after its last renewal: what a takeover takes after a leader was killed.
const DURATION: u64 = 15;
/// Seconds before its end at which it is renewed: every 4 s.
const GRACE: u64 = 11;
/// How long connecting may take, and how long an answer.
const REQUEST: Duration = Duration::from_millis(1_250);
/// After an error, how soon the next attempt follows, and for how long they follow. With a request on either side and
/// [`CUT`] that is less than [`GRACE`]: a leader that cannot renew has stopped before another one may begin.
const AGAIN: Duration = Duration::from_millis(500);
const TOLERANCE: Duration = Duration::from_secs(3);
/// Errors further apart than this have a renewal between them: attempts follow each other sooner, renewals later.
const APART: Duration = Duration::from_millis(3_750);
/// How long the controller's tasks have to end when the Lease is lost, and when it is given up.
const CUT: Duration = Duration::from_millis(500);
const GIVEN_UP: Duration = Duration::from_secs(5);
/// How long a candidate rests that lost, or could not even ask.
const REST: Duration = Duration::from_secs(2);

/// Who stands for election, and for what.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub namespace: String,
    pub lease: String,
    /// What people know the process by: its pod.
    pub name: String,
    /// What no other process has, also no later one of the same pod: who was killed does not hold what it held.
    pub mark: String,
}

/// A client for the Lease alone, which gives up on an answer before the Lease runs out.
///
/// # Errors
/// The configuration cannot be used.
pub fn client(mut config: Config) -> Result<Client, kube::Error> {
    config.connect_timeout = Some(REQUEST);
    config.read_timeout = Some(REQUEST);
    config.write_timeout = Some(REQUEST);
    config.reset_reader_on_write = true;
    config.default_retry = false;
    Client::try_from(config)
}

/// Stands for election until the drain begins. While it leads, `leads` is true and `controller` runs in a drain of its
/// own, which ends with the term; where the controller ends by itself, the term ends too.
pub async fn run<C, F>(
    client: Client,
    candidate: Candidate,
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
async fn elected(client: &Client, candidate: &Candidate) -> Result<LeaseManager, LeaseManagerError> {
    let Candidate { namespace, lease, name, mark } = candidate;
    let parameters = LeaseParams::new(format!("{name}_{mark}"), DURATION, GRACE)
        .with_field_manager(format!("postern-operator-{mark}"));
    let builder = LeaseManagerBuilder::new(client.clone(), lease).with_namespace(namespace);
    let manager = builder.with_parameters(parameters).build().await?;
    while !manager.changed().await? {}
    Ok(manager)
}

/// The time of one leader, in which its controller runs.
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
            // Dropped by a panic too.
            drop(ending);
        });
        Self { drain, ended }
    }
}

/// Why a term ends.
#[derive(Debug)]
enum End {
    Lost(String),
    ControllerEnded,
    Stopping,
}

/// Leads until the Lease is lost or there is no more use for it, which gives it to the next one at once.
async fn serve(lease: &LeaseManager, mut term: Term, leads: &watch::Sender<bool>, drain: &Drain) {
    let end = hold(lease, &mut term.ended, drain).await;
    leads.send_replace(false);
    let lost = matches!(end, End::Lost(_));
    match &end {
        End::Lost(why) => tracing::warn!(why, "this replica leads no more: the controller stops"),
        End::ControllerEnded => tracing::error!("the controller ended: another replica may run it"),
        End::Stopping => tracing::info!("this replica gives up leading"),
    }
    term.drain.shut_down(if lost { CUT } else { GIVEN_UP }).await;
    if lost {
        return;
    }
    // Where it fails, the Lease runs out by itself.
    match tokio::time::timeout(3 * REQUEST, lease.release()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the Lease could not be released"),
        Err(_) => tracing::warn!("the Lease could not be released in time"),
    }
}

async fn hold(lease: &LeaseManager, ended: &mut oneshot::Receiver<()>, drain: &Drain) -> End {
    let mut failures = Failures::default();
    loop {
        tokio::select! {
            changed = lease.changed() => match changed {
                Ok(true) => {}
                Ok(false) => return End::Lost("another replica holds the Lease".to_owned()),
                Err(error) if failures.exhaust(Instant::now()) => {
                    return End::Lost(format!("the Lease cannot be renewed ({error})"));
                }
                Err(_) => tokio::time::sleep(AGAIN).await,
            },
            _ = &mut *ended => return End::ControllerEnded,
            () = drain.stopping() => return End::Stopping,
        }
    }
}

/// Failed attempts without a success between them: the first and the last.
#[derive(Debug, Default)]
struct Failures(Option<(Instant, Instant)>);

impl Failures {
    /// Counts one more, and answers whether that was the last that is borne.
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
