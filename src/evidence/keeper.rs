//! The thread that touches the directory: one after the other, so that a disk that hangs holds up nobody else.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use super::directory::{Directory, Seen};
use super::index::{Entry, Index, Look, Needed, Retention};
use super::{MOST_TEXT, NotKept};
use crate::telemetry::Metrics;
use crate::tool_output::evidence_id::EvidenceId;

/// How often files are looked through for those that are too old.
const SWEEP: Duration = Duration::from_secs(60);

/// What the thread and those who ask it share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) index: Index,
    pub(super) retention: Retention,
    /// The directory was read since the start.
    pub(super) is_listed: bool,
}

/// A poisoned lock is ignored: the index is consistent after each step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What waits for the thread, or is under way.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) jobs: AtomicUsize,
    pub(super) bytes: AtomicUsize,
}

/// A task of the thread, counted in the backlog until it is dropped.
pub(super) struct Job {
    pub(super) work: Work,
    _counted: Counted,
}

pub(super) enum Work {
    /// All texts that one request carries.
    Keep(Vec<(EvidenceId, Arc<str>)>, oneshot::Sender<Vec<Result<(), NotKept>>>),
    Read(EvidenceId, oneshot::Sender<Option<Arc<str>>>),
    /// Reads the directory, where that was not done yet.
    List(oneshot::Sender<()>),
}

struct Counted(Arc<Backlog>, usize);

impl Job {
    pub(super) fn new(work: Work, backlog: &Arc<Backlog>) -> Self {
        let bytes = match &work {
            Work::Keep(texts, _) => texts.iter().map(|(_, text)| text.len()).sum(),
            Work::Read(..) | Work::List(_) => 0,
        };
        backlog.jobs.fetch_add(1, Ordering::AcqRel);
        backlog.bytes.fetch_add(bytes, Ordering::AcqRel);
        Self { work, _counted: Counted(Arc::clone(backlog), bytes) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.jobs.fetch_sub(1, Ordering::AcqRel);
        self.0.bytes.fetch_sub(self.1, Ordering::AcqRel);
    }
}

/// The state of the thread.
pub(super) struct Keeper {
    pub(super) path: Arc<Path>,
    pub(super) shared: Arc<Mutex<Shared>>,
    pub(super) metrics: Arc<Metrics>,
    /// The last text could not be kept, which is logged once.
    pub(super) has_failed: bool,
}

impl Keeper {
    /// Works until nobody can ask any more.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        self.sweep();
        let mut swept = Instant::now();
        loop {
            match jobs.recv_timeout(SWEEP) {
                Ok(job) => self.work(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if swept.elapsed() >= SWEEP {
                self.sweep();
                swept = Instant::now();
            }
        }
    }

    fn work(&mut self, job: Job) {
        let Job { work, _counted: counted } = job;
        match work {
            Work::Keep(_, reply) if reply.is_closed() => drop(counted),
            Work::Keep(texts, reply) => {
                let outcomes = self.keep(&texts);
                self.count();
                // Before the answer, so that whoever has it finds room.
                drop((texts, counted));
                // Who asked may have stopped waiting.
                let _ = reply.send(outcomes);
            }
            Work::Read(id, reply) => {
                let read = self.read(id);
                // That a text is not there says nothing of the directory.
                if !matches!(read, Ok(None)) {
                    self.note(read.as_ref().err());
                }
                drop(counted);
                let _ = reply.send(read.unwrap_or_default());
            }
            Work::List(reply) => {
                let opened = self.directory().map(drop);
                self.note(opened.as_ref().err());
                drop(counted);
                let _ = reply.send(());
            }
        }
    }

    /// The directory, which is read where that was not possible before.
    fn directory(&mut self) -> io::Result<Directory> {
        let directory = Directory(Arc::clone(&self.path));
        if !lock(&self.shared).is_listed {
            let now = SystemTime::now();
            let files = directory.list()?;
            let mut shared = lock(&self.shared);
            for (id, Seen { length, modified }) in files {
                // A time to come would keep a file for ever.
                shared.index.put(id, Entry { length, touched: modified.min(now), looked: None });
            }
            shared.is_listed = true;
        }
        Ok(directory)
    }

    fn keep(&mut self, texts: &[(EvidenceId, Arc<str>)]) -> Vec<Result<(), NotKept>> {
        let directory = match self.directory() {
            Ok(directory) => directory,
            Err(error) => {
                self.note(Some(&error));
                return texts.iter().map(|_| Err(reason(&error))).collect();
            }
        };
        let needed = texts.iter().map(|(id, _)| *id).collect();
        texts.iter().map(|(id, text)| self.keep_one(&directory, (*id, text), &needed)).collect()
    }

    fn keep_one(
        &mut self,
        directory: &Directory,
        (id, text): (EvidenceId, &str),
        needed: &Needed,
    ) -> Result<(), NotKept> {
        let length = text.len() as u64;
        let (before, gone) = {
            let Shared { index, retention, .. } = &mut *lock(&self.shared);
            if index.touch(id, length, (Instant::now(), SystemTime::now())) {
                return Ok(());
            }
            if length > MOST_TEXT.min(retention.max_bytes) {
                return Err(NotKept::TooLarge);
            }
            let gone = index.room_for(id, length, needed, retention.max_bytes);
            (index.entry(id), gone.ok_or(NotKept::Full)?)
        };
        let now = SystemTime::now();
        let written = self.remove(directory, &gone).and_then(|()| {
            let seen = match before {
                Some(before) if holds(directory, id, text, before)? => directory.touch(id, now)?,
                // Whatever stands there is replaced.
                Some(_) | None => None,
            };
            seen.map_or_else(|| directory.write(id, text), Ok)
        });
        self.note(written.as_ref().err());
        let Seen { modified, .. } = written.map_err(|error| reason(&error))?;
        let looked = Some(Look { at: Instant::now(), modified });
        lock(&self.shared).index.put(id, Entry { length, touched: now, looked });
        Ok(())
    }

    /// Removes files, and forgets those that are gone.
    fn remove(&self, directory: &Directory, gone: &[EvidenceId]) -> io::Result<()> {
        for id in gone {
            directory.remove(*id)?;
            lock(&self.shared).index.remove(*id);
        }
        Ok(())
    }

    /// Reads a text that is kept, if the file still holds it.
    fn read(&mut self, id: EvidenceId) -> io::Result<Option<Arc<str>>> {
        let bytes = self.directory()?.read(id, MOST_TEXT)?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.filter(|text| EvidenceId::of(text) == id).map(Arc::from))
    }

    /// Removes what is too old, and what is too much since the settings changed.
    fn sweep(&mut self) {
        let swept = self.directory().and_then(|directory| {
            self.learn_touches(&directory)?;
            let gone = self.outdated();
            self.remove(&directory, &gone)
        });
        if let Err(error) = swept {
            self.note(Some(&error));
        }
        self.count();
    }

    fn outdated(&self) -> Vec<EvidenceId> {
        let Shared { index, retention, .. } = &mut *lock(&self.shared);
        index.outdated(SystemTime::now(), *retention)
    }

    /// Another process may keep the same texts, as several runs on one machine do: what it touched is not too old.
    fn learn_touches(&self, directory: &Directory) -> io::Result<()> {
        for id in self.outdated() {
            let seen = directory.look(id)?;
            let mut shared = lock(&self.shared);
            if let (Some(seen), Some(entry)) = (seen, shared.index.entry(id)) {
                let touched = entry.touched.max(seen.modified.min(SystemTime::now()));
                shared.index.put(id, Entry { touched, ..entry });
            }
        }
        Ok(())
    }

    fn count(&self) {
        self.metrics.evidence_bytes(lock(&self.shared).index.bytes());
    }

    /// Logs that texts cannot be kept, once until one is kept again.
    fn note(&mut self, error: Option<&io::Error>) {
        if let Some(error) = error.filter(|_| !self.has_failed) {
            let directory = self.path.display();
            tracing::warn!(%error, %directory, "tool results cannot be kept as evidence, and are sent uncut");
        }
        self.has_failed = error.is_some();
    }
}

/// Whether the file holds the text. It is read unless it is known that nobody has written it since it last did.
fn holds(directory: &Directory, id: EvidenceId, text: &str, before: Entry) -> io::Result<bool> {
    let length = text.len() as u64;
    let Some(seen) = directory.look(id)?.filter(|seen| seen.length == length) else { return Ok(false) };
    if before.looked.is_some_and(|look| look.modified == seen.modified) {
        return Ok(true);
    }
    Ok(directory.read(id, length)?.is_some_and(|bytes| bytes == text.as_bytes()))
}

/// Why a text could not be kept.
pub(super) fn reason(error: &io::Error) -> NotKept {
    let kind = error.kind();
    if matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge) {
        NotKept::Full
    } else if matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory) {
        NotKept::NoDirectory
    } else {
        NotKept::WriteFailed
    }
}
