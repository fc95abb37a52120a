//! Keeps the texts that are cut out of requests, a file each, so that the agent can read all of what it was shown a part of.

mod directory;
mod index;
mod keeper;
mod refused;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use memchr::memmem::Finder;
use tokio::sync::oneshot;

use self::index::{Index, Retention};
use self::keeper::{Backlog, Job, Keeper, Shared, Work, lock};
use self::refused::Refused;
use crate::name::gateway;
use crate::telemetry::Metrics;
use crate::telemetry::label::Label;
use crate::tool_output::evidence_id::EvidenceId;

/// The longest text that is kept, in bytes.
const MOST_TEXT: u64 = 32 << 20;

/// How long a request waits for its texts to be kept, and a reader for a text.
const PATIENCE: Duration = Duration::from_secs(2);

/// What may wait for the thread at a time.
const MOST_JOBS: usize = 64;
const MOST_WAITING_BYTES: usize = 64 << 20;

/// How texts are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceTerms {
    /// It must be there; the gateway writes it alone.
    pub directory: PathBuf,
    /// The directory as the agent reads it; without one it asks the gateway.
    pub agent_path: Option<String>,
    /// How long a text is kept after a request last carried it.
    pub max_age: Duration,
    /// How much the files may take together, in bytes of whole blocks.
    pub max_bytes: u64,
    /// Whether `/mcp` has a tool that reads texts.
    pub offers_tool: bool,
}

/// Why a text is not kept, now and for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotKept {
    /// The directory is not there.
    NoDirectory,
    /// The disk is full, or the texts of this request alone are more than may be kept.
    Full,
    WriteFailed,
    /// The text is longer than may be kept.
    TooLarge,
    /// It was not written in time.
    Late,
    /// Too much waits to be written.
    Busy,
}

impl Label for NotKept {
    const ALL: &'static [Self] =
        &[Self::NoDirectory, Self::Full, Self::WriteFailed, Self::TooLarge, Self::Late, Self::Busy];

    fn index(self) -> usize {
        self as usize
    }

    fn word(self) -> &'static str {
        match self {
            Self::NoDirectory => "no-directory",
            Self::Full => "full",
            Self::WriteFailed => "write-failed",
            Self::TooLarge => "too-large",
            Self::Late => "late",
            Self::Busy => "busy",
        }
    }
}

/// Why a text cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRead {
    /// It is not kept, or its file no longer holds it.
    Unknown,
    /// It was not read in time.
    Late,
}

/// The kept texts of this gateway.
#[derive(Clone)]
pub struct Evidence {
    store: Arc<Store>,
    agent_path: Option<Arc<str>>,
    /// Every address of a text has one of these in it.
    places: Arc<[Finder<'static>]>,
    offers_tool: bool,
}

/// The way to the thread of one directory, which ends with the last of these.
struct Store {
    jobs: SyncSender<Job>,
    shared: Arc<Mutex<Shared>>,
    backlog: Arc<Backlog>,
    /// A task was not done in time, and nothing has come of it since.
    is_late: AtomicBool,
    refused: Mutex<Refused>,
}

impl Evidence {
    /// Keeps texts on these terms, in a thread of its own. What the directory holds of an earlier process is kept on.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(terms: &EvidenceTerms, metrics: Arc<Metrics>) -> io::Result<Self> {
        let (jobs, queue) = mpsc::sync_channel(MOST_JOBS);
        let shared = Shared { index: Index::default(), retention: retention(terms), is_listed: false };
        let shared = Arc::new(Mutex::new(shared));
        let keeper = Keeper {
            path: terms.directory.as_path().into(),
            shared: Arc::clone(&shared),
            metrics,
            has_failed: false,
        };
        std::thread::Builder::new().name("evidence".to_owned()).spawn(move || keeper.run(&queue))?;
        let store = Store {
            jobs,
            shared,
            backlog: Arc::default(),
            is_late: AtomicBool::new(false),
            refused: Mutex::default(),
        };
        Ok(Self::over(Arc::new(store), terms))
    }

    fn over(store: Arc<Store>, terms: &EvidenceTerms) -> Self {
        let agent_path = terms.agent_path.as_deref().map(|path| path.trim_end_matches('/'));
        let places = agent_path.into_iter().chain(gateway::EVIDENCE_PLACES);
        Self {
            store,
            agent_path: agent_path.map(Arc::from),
            places: places.map(|place| Finder::new(place).into_owned()).collect(),
            offers_tool: terms.offers_tool,
        }
    }

    /// The same texts on other terms; the directory stays.
    #[must_use]
    pub fn on(&self, terms: &EvidenceTerms) -> Self {
        lock(&self.store.shared).retention = retention(terms);
        Self::over(Arc::clone(&self.store), terms)
    }

    /// Keeps these texts together, each under its name ([`EvidenceId::of`]); what is there already is touched. A text that
    /// cannot be kept is not kept later either: it was sent uncut, and has to stay as it was sent. Begins at once, and what
    /// is returned waits for the end, 2 seconds at most.
    pub fn keep(
        &self,
        texts: &[(EvidenceId, &Arc<str>)],
    ) -> impl Future<Output = Vec<Result<(), NotKept>>> + use<'_> {
        let now = (Instant::now(), SystemTime::now());
        let mut outcomes: Vec<Result<(), NotKept>> = Vec::with_capacity(texts.len());
        let mut asked = Vec::with_capacity(texts.len());
        {
            let (refused, mut shared) = (lock(&self.store.refused), lock(&self.store.shared));
            for (place, (id, text)) in texts.iter().enumerate() {
                let refused = refused.reason(*id);
                if refused.is_none() {
                    let is_there = shared.index.touch(*id, text.len() as u64, now);
                    asked.push(AskedText { place, id: *id, is_there });
                }
                outcomes.push(refused.map_or(Ok(()), Err));
            }
        }
        // All of them, since what is there may have to go for another request until the thread comes to this one.
        let begun = asked.iter().any(|text| !text.is_there).then(|| {
            let texts = asked.iter().filter_map(|text| texts.get(text.place));
            let texts = texts.map(|(id, text)| (*id, Arc::clone(text))).collect();
            self.store.begin(|reply| Work::Keep(texts, reply))
        });
        async move {
            let Some(begun) = begun else { return outcomes };
            let written = match self.store.wait(begun).await {
                Ok(written) => written,
                Err(why) => asked.iter().map(|text| if text.is_there { Ok(()) } else { Err(why) }).collect(),
            };
            for (AskedText { place, id, .. }, written) in asked.into_iter().zip(written) {
                if let (Err(why), Some(outcome)) = (written, outcomes.get_mut(place)) {
                    lock(&self.store.refused).add(id, why);
                    *outcome = Err(why);
                }
            }
            outcomes
        }
    }

    /// Where the agent reads a text: a file, or the gateway's own address.
    pub fn place(&self, id: EvidenceId) -> String {
        match &self.agent_path {
            Some(path) => format!("{path}/{}", directory::file_name(id)),
            None => format!("{}{id}", gateway::EVIDENCE),
        }
    }

    /// What every such place begins with.
    pub fn root(&self) -> &str {
        self.agent_path.as_deref().unwrap_or(gateway::EVIDENCE)
    }

    /// Whether a text, such as the input of a call, names a place of texts that were cut.
    pub fn is_named_in(&self, text: &str) -> bool {
        self.places.iter().any(|place| place.find(text.as_bytes()).is_some())
    }

    /// Whether `/mcp` has a tool that reads texts.
    pub fn offers_tool(&self) -> bool {
        self.offers_tool
    }

    /// The length of a kept text in bytes.
    pub async fn length(&self, id: EvidenceId) -> Option<u64> {
        if !lock(&self.store.shared).is_listed {
            // Right after the start the thread may not have looked yet; if it cannot, nothing is known.
            self.store.ask(Work::List).await.ok()?;
        }
        lock(&self.store.shared).index.entry(id).map(|entry| entry.length)
    }

    /// Reads a kept text, byte for byte. Waits 2 seconds at most.
    ///
    /// # Errors
    /// It is not kept, or not read in time.
    pub async fn read(&self, id: EvidenceId) -> Result<Arc<str>, NotRead> {
        if self.length(id).await.is_none() {
            return Err(NotRead::Unknown);
        }
        let read = self.store.ask(|reply| Work::Read(id, reply)).await;
        read.map_err(|_| NotRead::Late)?.ok_or(NotRead::Unknown)
    }
}

/// A text that a request asks to be kept.
struct AskedText {
    /// Its place among those of the request.
    place: usize,
    id: EvidenceId,
    is_there: bool,
}

/// A task that the thread was given, or why it was not.
type Begun<T> = Result<oneshot::Receiver<T>, NotKept>;

impl Store {
    /// Has the thread do something, and waits for it.
    async fn ask<T>(&self, work: impl FnOnce(oneshot::Sender<T>) -> Work) -> Result<T, NotKept> {
        self.wait(self.begin(work)).await
    }

    /// Has the thread do something. While a disk hangs one request waits for it, and the others are told at once.
    fn begin<T>(&self, work: impl FnOnce(oneshot::Sender<T>) -> Work) -> Begun<T> {
        let waiting = self.backlog.jobs.load(Ordering::Acquire);
        if waiting == 0 {
            self.is_late.store(false, Ordering::Release);
        } else if self.is_late.load(Ordering::Acquire) {
            return Err(NotKept::Late);
        }
        if self.backlog.bytes.load(Ordering::Acquire) > MOST_WAITING_BYTES {
            return Err(NotKept::Busy);
        }
        let (reply, answer) = oneshot::channel();
        let job = Job::new(work(reply), &self.backlog);
        self.jobs.try_send(job).map_err(|_| NotKept::Busy)?;
        Ok(answer)
    }

    /// Waits for what was begun.
    async fn wait<T>(&self, begun: Begun<T>) -> Result<T, NotKept> {
        match tokio::time::timeout(PATIENCE, begun?).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(NotKept::WriteFailed),
            Err(_) => {
                self.is_late.store(true, Ordering::Release);
                Err(NotKept::Late)
            }
        }
    }
}

fn retention(terms: &EvidenceTerms) -> Retention {
    Retention { max_age: terms.max_age, max_bytes: terms.max_bytes }
}

/// Says why texts could not be kept in a directory.
///
/// # Errors
/// The reason: it is not there, is no directory, or may not be written.
pub fn check(directory: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(directory, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?)
}
