//! Texts are kept whole or not at all, and what could not be kept stays so.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::mpsc::Receiver;

use tempfile::TempDir;

use super::*;

const MIB: u64 = 1 << 20;

fn terms(directory: &Path) -> EvidenceTerms {
    EvidenceTerms {
        directory: directory.to_owned(),
        agent_path: None,
        max_age: Duration::from_secs(60 * 60),
        max_bytes: MIB,
        offers_tool: false,
    }
}

fn opened(directory: &Path) -> Evidence {
    Evidence::open(&terms(directory), Arc::new(Metrics::new().unwrap())).unwrap()
}

fn place() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn file(directory: &Path, text: &str) -> PathBuf {
    directory.join(format!("{}.txt", EvidenceId::of(text)))
}

async fn keep(evidence: &Evidence, texts: &[&str]) -> Vec<Result<(), NotKept>> {
    let texts: Vec<Arc<str>> = texts.iter().map(|text| Arc::from(*text)).collect();
    let named: Vec<_> = texts.iter().map(|text| (EvidenceId::of(text), text)).collect();
    evidence.keep(&named).await
}

async fn read(evidence: &Evidence, text: &str) -> Result<String, NotRead> {
    evidence.read(EvidenceId::of(text)).await.map(|read| read.to_string())
}

/// The thread of these texts.
fn keeper(directory: &Path, evidence: &Evidence) -> Keeper {
    Keeper {
        path: directory.into(),
        shared: Arc::clone(&evidence.store.shared),
        metrics: Arc::new(Metrics::new().unwrap()),
        has_failed: false,
    }
}

/// Has the next request with this text look at its file.
fn forget_looks(evidence: &Evidence, text: &str) {
    let (id, index) = (EvidenceId::of(text), &mut lock(&evidence.store.shared).index);
    let entry = index.entry(id).unwrap();
    index.put(id, index::Entry { looked: None, ..entry });
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// O5: a disk that is full, or out of reach, costs the cut and nothing else.
#[test]
fn why_a_disk_takes_nothing_has_a_word_that_stays() {
    for (kind, word) in [
        (io::ErrorKind::StorageFull, "full"),
        (io::ErrorKind::QuotaExceeded, "full"),
        (io::ErrorKind::FileTooLarge, "full"),
        (io::ErrorKind::NotFound, "no-directory"),
        (io::ErrorKind::ReadOnlyFilesystem, "write-failed"),
        (io::ErrorKind::PermissionDenied, "write-failed"),
    ] {
        assert_eq!(keeper::reason(&kind.into()).word(), word);
    }
    assert!(NotKept::ALL.iter().enumerate().all(|(at, why)| why.index() == at));
}

#[tokio::test]
async fn a_text_is_there_whole_and_for_reading_alone_before_the_request_leaves() {
    let place = place();
    let metrics = Arc::new(Metrics::new().unwrap());
    let evidence = Evidence::open(&terms(place.path()), Arc::clone(&metrics)).unwrap();
    let text = "one\ntwo\r\n\u{e9}\0";
    assert_eq!(keep(&evidence, &[text, text, ""]).await, [Ok(()), Ok(()), Ok(())]);
    let file = file(place.path(), text);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o444);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "no draft is left");
    assert_eq!(read(&evidence, text).await.as_deref(), Ok(text));
    assert_eq!(read(&evidence, "other").await, Err(NotRead::Unknown));
    assert!(metrics.encode().contains("\npostern_evidence_bytes 8192\n"), "two blocks");
}

#[tokio::test]
async fn a_text_that_is_there_is_touched_and_not_written_again() {
    let place = place();
    let evidence = opened(place.path());
    keep(&evidence, &["a"]).await;
    let before = fs::metadata(file(place.path(), "a")).unwrap();
    let old = SystemTime::now() - Duration::from_secs(600);
    File::open(file(place.path(), "a")).unwrap().set_modified(old).unwrap();
    for _ in 0..2 {
        forget_looks(&evidence, "a");
        assert_eq!(keep(&evidence, &["a"]).await, [Ok(())]);
    }
    let after = fs::metadata(file(place.path(), "a")).unwrap();
    assert_eq!(before.ino(), after.ino());
    assert!(after.modified().unwrap() > old + Duration::from_secs(500));
}

#[tokio::test]
async fn a_file_that_is_gone_or_changed_is_written_again() {
    let place = place();
    let evidence = opened(place.path());
    keep(&evidence, &["text"]).await;
    let file = file(place.path(), "text");
    for broken in [None, Some("tex"), Some("tExt"), Some("text longer")] {
        fs::remove_file(&file).unwrap();
        broken.into_iter().for_each(|content| fs::write(&file, content).unwrap());
        assert_eq!(read(&evidence, "text").await, Err(NotRead::Unknown), "{broken:?}");
        forget_looks(&evidence, "text");
        assert_eq!(keep(&evidence, &["text"]).await, [Ok(())]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "text", "{broken:?}");
    }
}

#[tokio::test]
async fn a_restart_keeps_what_is_there_and_trusts_none_of_it_unread() {
    let place = place();
    keep(&opened(place.path()), &["whole", "broken"]).await;
    fs::remove_file(file(place.path(), "broken")).unwrap();
    fs::write(file(place.path(), "broken"), "brokeN").unwrap();
    let draft = file(place.path(), "draft").with_extension("1234.part");
    fs::write(&draft, "dra").unwrap();
    fs::write(place.path().join("notes.txt"), "of somebody else").unwrap();

    let evidence = opened(place.path());
    assert_eq!(keep(&evidence, &["new"]).await, [Ok(())]);
    assert!(!draft.exists(), "an end between writing and renaming leaves nothing");
    assert!(place.path().join("notes.txt").exists());
    assert_eq!(lock(&evidence.store.shared).index.bytes(), 3 * 4_096);
    assert_eq!(read(&evidence, "whole").await.as_deref(), Ok("whole"));
    assert_eq!(read(&evidence, "broken").await, Err(NotRead::Unknown));
    assert_eq!(read(&evidence, "draft").await, Err(NotRead::Unknown));
    assert_eq!(keep(&evidence, &["broken"]).await, [Ok(())]);
    assert_eq!(read(&evidence, "broken").await.as_deref(), Ok("broken"));

    // What somebody puts where a draft will be made, while the gateway runs.
    let draft = file(place.path(), "last").with_extension(format!("{}.part", std::process::id()));
    fs::write(&draft, "not ours").unwrap();
    assert_eq!(keep(&evidence, &["last"]).await, [Ok(())]);
    assert_eq!(read(&evidence, "last").await.as_deref(), Ok("last"));
}

/// O2: what others put into the directory leads nowhere.
#[test]
fn no_symbolic_link_is_followed_and_nothing_but_a_file_is_read() {
    run(links_lead_nowhere());
}

async fn links_lead_nowhere() {
    let place = place();
    let directory = place.path().join("evidence");
    fs::create_dir(&directory).unwrap();
    let secret = place.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, file(&directory, "secret")).unwrap();
    let drafts = [std::process::id().to_string(), "1".to_owned()];
    for draft in drafts.map(|process| format!("{process}.part")) {
        symlink(&secret, file(&directory, "secret").with_extension(draft)).unwrap();
    }
    fs::create_dir(file(&directory, "directory")).unwrap();
    fs::create_dir(file(&directory, "directory").with_extension("1.part")).unwrap();
    let evidence = opened(&directory);
    assert_eq!(keep(&evidence, &["twin"]).await, [Ok(())]);
    for text in ["secret", "directory"] {
        assert_eq!(read(&evidence, text).await, Err(NotRead::Unknown), "{text}");
    }
    assert_eq!(keep(&evidence, &["secret", "directory"]).await, [Ok(()), Err(NotKept::WriteFailed)]);
    assert!(fs::symlink_metadata(file(&directory, "secret")).unwrap().is_file(), "the link is replaced");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o200, 0o200, "nothing went through it");
    fs::remove_file(file(&directory, "twin")).unwrap();
    symlink(&secret, file(&directory, "twin")).unwrap();
    assert_eq!(read(&evidence, "twin").await, Err(NotRead::Unknown));
}

#[tokio::test]
async fn two_processes_share_a_directory_and_neither_takes_what_the_other_needs() {
    let place = place();
    let draft = file(place.path(), "draft").with_extension("1.part");
    let writer = File::create(&draft).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (first, second) = (opened(place.path()), opened(place.path()));
    keep(&first, &["shared", "own"]).await;
    assert!(draft.exists(), "its writer lives");
    keep(&second, &["shared"]).await;

    let id = EvidenceId::of("shared");
    let old = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    let age = |evidence: &Evidence| {
        let index = &mut lock(&evidence.store.shared).index;
        let entry = index.entry(id).unwrap();
        index.put(id, index::Entry { touched: old, ..entry });
    };
    age(&first);
    let keeper = keeper(place.path(), &first);
    let (jobs, queue) = mpsc::sync_channel(1);
    drop(jobs);
    keeper.run(&queue);
    assert_eq!(read(&second, "shared").await.as_deref(), Ok("shared"));
    assert!(lock(&first.store.shared).index.entry(id).unwrap().touched > old, "the other touched it");
}

#[tokio::test]
async fn what_could_not_be_kept_once_is_never_kept() {
    let place = place();
    let directory = place.path().join("evidence");
    let evidence = opened(&directory);
    assert_eq!(keep(&evidence, &["early"]).await, [Err(NotKept::NoDirectory)]);
    fs::create_dir(&directory).unwrap();
    assert_eq!(keep(&evidence, &["early", "later"]).await, [Err(NotKept::NoDirectory), Ok(())]);
    assert!(!file(&directory, "early").exists());

    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(keep(&evidence, &["while it runs"]).await, [Err(NotKept::NoDirectory)]);
    fs::create_dir(&directory).unwrap();
    let evidence = evidence.on(&terms(&directory));
    let outcomes = keep(&evidence, &["early", "while it runs", "other"]).await;
    assert_eq!(outcomes, [Err(NotKept::NoDirectory), Err(NotKept::NoDirectory), Ok(())]);
}

/// O5: over the bytes the least recently touched goes, but nothing that the same request names.
#[test]
fn a_full_store_gives_up_what_was_touched_longest_ago() {
    run(the_oldest_goes());
}

async fn the_oldest_goes() {
    let place = place();
    let small = EvidenceTerms { max_bytes: 3 * 4_096, ..terms(place.path()) };
    let evidence = Evidence::open(&small, Arc::new(Metrics::new().unwrap())).unwrap();
    for text in ["1", "2", "3", "1", "4"] {
        assert_eq!(keep(&evidence, &[text]).await, [Ok(())], "{text}");
    }
    let there = |text| file(place.path(), text).exists();
    assert!(there("1") && !there("2") && there("3") && there("4"));
    let outcomes = keep(&evidence, &["5", "6", "7", "8"]).await;
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Err(NotKept::Full)]);
    assert!(there("5") && there("6") && there("7"), "what a request names is there together");
    let outcomes = keep(&evidence, &["5", "6", "7", "9"]).await;
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Err(NotKept::Full)], "also what was there before");
    let long = "x".repeat(3 * 4_096 + 1);
    assert_eq!(keep(&evidence, &[&long]).await, [Err(NotKept::TooLarge)]);
    assert_eq!(lock(&evidence.store.shared).index.bytes(), 3 * 4_096);
}

#[tokio::test]
async fn what_was_touched_too_long_ago_goes_also_when_the_settings_change() {
    let place = place();
    keep(&opened(place.path()), &["old", "young"]).await;
    let hours = |hours: u64| SystemTime::now() - Duration::from_secs(hours * 60 * 60);
    for (text, time) in [("old", hours(2)), ("young", hours(0) + Duration::from_secs(1 << 20))] {
        File::open(file(place.path(), text)).unwrap().set_modified(time).unwrap();
    }
    let evidence = opened(place.path());
    keep(&evidence, &["new"]).await;
    assert!(!file(place.path(), "old").exists() && file(place.path(), "young").exists());

    let smaller = EvidenceTerms { max_bytes: 4_096, ..terms(place.path()) };
    let evidence = evidence.on(&smaller);
    keep(&evidence, &["newest"]).await;
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

/// A store whose thread does nothing.
fn hung(directory: &Path) -> (Evidence, Receiver<Job>) {
    let (jobs, queue) = mpsc::sync_channel(MOST_JOBS);
    let shared = Shared { index: Index::default(), retention: retention(&terms(directory)), is_listed: true };
    let store = Store {
        jobs,
        shared: Arc::new(Mutex::new(shared)),
        backlog: Arc::default(),
        is_late: AtomicBool::new(false),
        refused: Mutex::default(),
    };
    (Evidence::over(Arc::new(store), &terms(directory)), queue)
}

/// What was there when a request asked, and had to go for another one before the thread came to it.
#[tokio::test]
async fn what_goes_before_its_turn_comes_is_written_again() {
    let place = place();
    let (evidence, queue) = hung(place.path());
    let (there, id) = (Arc::from("there"), EvidenceId::of("there"));
    let at = Instant::now();
    let looked = Some(index::Look { at, modified: SystemTime::now() });
    let entry = index::Entry { length: 5, touched: SystemTime::now(), looked };
    lock(&evidence.store.shared).index.put(id, entry);
    let keeping = evidence.keep(&[(id, &there), (EvidenceId::of("new"), &Arc::from("new"))]);
    lock(&evidence.store.shared).index.remove(id);

    let keeper = keeper(place.path(), &evidence);
    std::thread::spawn(move || keeper.run(&queue));

    assert_eq!(keeping.await, [Ok(()), Ok(())]);
    assert!(file(place.path(), "there").exists() && file(place.path(), "new").exists());
}

#[tokio::test(start_paused = true)]
async fn while_a_disk_hangs_one_request_waits_and_the_others_go_on_at_once() {
    let (evidence, queue) = hung(Path::new("/nonexistent"));
    let began = tokio::time::Instant::now();
    assert_eq!(keep(&evidence, &["a"]).await, [Err(NotKept::Late)]);
    assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
    assert_eq!(keep(&evidence, &["b"]).await, [Err(NotKept::Late)]);
    assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());

    drop(queue.recv().unwrap());
    let (outcome, ()) = tokio::join!(keep(&evidence, &["a", "c"]), async {
        let Ok(Job { work: Work::Keep(texts, reply), .. }) = queue.recv() else { panic!("no text came") };
        assert_eq!(texts.len(), 1, "what was late stays out");
        reply.send(vec![Ok(())]).unwrap();
    });
    assert_eq!(outcome, [Err(NotKept::Late), Ok(())]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_disk_is_bounded() {
    let (evidence, _queue) = hung(Path::new("/nonexistent"));
    let long = "x".repeat(MOST_WAITING_BYTES + 1);
    let (id, long) = (EvidenceId::of(&long), Arc::from(long));
    let long = [(id, &long)];
    let (first, second) = tokio::join!(evidence.keep(&long), keep(&evidence, &["next"]));
    assert_eq!(first, [Err(NotKept::Late)]);
    assert_eq!(second, [Err(NotKept::Busy)]);
}

#[test]
fn a_marker_names_a_file_or_the_gateways_own_address() {
    let (evidence, _queue) = hung(Path::new("/nonexistent"));
    let id = EvidenceId::of("");
    assert_eq!(evidence.place(id), "http://postern.internal/evidence/e3b0c44298fc1c149afb");
    let terms = EvidenceTerms { agent_path: Some("/run/e/".to_owned()), ..terms(Path::new("/nonexistent")) };
    let evidence = Evidence::over(Arc::clone(&evidence.store), &terms);
    assert_eq!(evidence.place(id), "/run/e/e3b0c44298fc1c149afb.txt");
}

#[test]
fn a_directory_that_cannot_take_texts_is_told_of() {
    let place = place();
    check(place.path()).unwrap();
    assert_eq!(check(&place.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::write(place.path().join("file"), "").unwrap();
    assert_eq!(check(&place.path().join("file")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
}
