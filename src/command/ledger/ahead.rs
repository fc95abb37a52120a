//! Makes parts of a record on other threads, ahead of this one, which takes them in their order.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use anyhow::Context;

/// How many parts a worker has before it at most: one that it makes, and one that waits.
const AHEAD: usize = 2;

/// The most threads that make parts.
const MOST_WORKERS: usize = 4;

/// A thread that makes something of parts.
struct Worker<P, T> {
    /// A part, and what was made before and is no longer needed: memory that another thread frees costs more.
    parts: Sender<(P, Option<T>)>,
    results: Receiver<T>,
}

/// How many threads make parts: one for each core.
pub(super) fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS)
}

/// Has the workers make something of each part, and takes it on this thread, in the order of the parts.
///
/// # Errors
/// A part cannot be read, or taking it failed: the first of these in the order of the parts.
pub(super) fn each<P: Send, T: Send>(
    mut part: impl FnMut() -> anyhow::Result<Option<P>>,
    workers: Vec<impl FnMut(P) -> T + Send>,
    mut take: impl FnMut(&T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let workers: Vec<Worker<P, T>> = workers
            .into_iter()
            .map(|mut make| {
                let ((parts, given), (made, results)) = (mpsc::channel::<(P, Option<T>)>(), mpsc::channel());
                scope.spawn(move || {
                    given.into_iter().try_for_each(|(part, taken)| {
                        drop(taken);
                        made.send(make(part))
                    })
                });
                Worker { parts, results }
            })
            .collect();
        let mut order = workers.iter().cycle();
        // The results that are awaited, in the order of their parts.
        let mut awaited: VecDeque<&Receiver<T>> = VecDeque::new();
        // What was taken last goes back to who made it, whose turn is next.
        let mut taken = None;
        let mut end = None;
        loop {
            while end.is_none() && awaited.len() < AHEAD * workers.len() {
                let next = part();
                match (next, order.next()) {
                    (Ok(Some(part)), Some(Worker { parts, results })) => {
                        parts
                            .send((part, taken.take()))
                            .ok()
                            .context("a thread that reads events has ended")?;
                        awaited.push_back(results);
                    }
                    (next, _) => end = Some(next.map(drop)),
                }
            }
            let Some(results) = awaited.pop_front() else { return end.unwrap_or(Ok(())) };
            let made = results.recv().context("a thread that reads events has ended")?;
            take(&made)?;
            taken = Some(made);
        }
    })
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    /// Gives the numbers up to one, with so many workers; the first is slower than the others. Returns what was taken.
    fn taken(to: u64, workers: u64, is_taken: impl Fn(u64) -> bool) -> (Vec<u64>, anyhow::Result<()>) {
        let (mut parts, mut taken) = (1..=to, Vec::new());
        let make = |worker: u64| {
            move |part: u64| {
                let turns = if worker == 0 { 20_000 } else { 1 };
                std::hint::black_box((0..turns).map(std::hint::black_box).sum::<u64>());
                part * 10
            }
        };
        let part = || match parts.next() {
            Some(13) => bail!("the thirteenth"),
            part => Ok(part),
        };
        let take = |made: &u64| {
            taken.push(*made);
            if is_taken(*made) { Ok(()) } else { bail!("not this one") }
        };
        let outcome = each(part, (0..workers).map(make).collect(), take);
        (taken, outcome)
    }

    #[test]
    fn parts_are_taken_in_their_order_however_long_each_takes() {
        for workers in 1..5 {
            for to in [0, 1, 12] {
                let (taken, outcome) = taken(to, workers, |_| true);
                outcome.unwrap();
                assert!(taken.into_iter().eq((1..=to).map(|part| part * 10)), "{workers} {to}");
            }
        }
    }

    #[test]
    fn what_was_read_before_a_failure_is_taken_before_it_is_told() {
        let (taken, outcome) = taken(100, 3, |_| true);
        assert_eq!((taken.len(), outcome.unwrap_err().to_string()), (12, "the thirteenth".to_owned()));
    }

    #[test]
    fn nothing_is_taken_after_that_failed() {
        let (taken, outcome) = taken(10, 3, |made| made < 40);
        assert_eq!(
            (taken, outcome.unwrap_err().to_string()),
            (vec![10, 20, 30, 40], "not this one".to_owned())
        );
    }
}
