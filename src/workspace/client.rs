//! The gateway's side: asks the companion, and waits for at most 50 ms. A companion that is dead, slow or wrong is as if it
//! were not there.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::PATIENCE;
use super::protocol::{self, MOST_ANSWER, MOST_QUESTION, PREFIX, ProtocolError};
use super::protocol::{WorkspaceAnswer, WorkspaceQuestion};

/// For how long a companion that was late is not asked: its silence must not slow down every answer.
const REST: Duration = Duration::from_secs(5);

/// Asks one companion.
#[derive(Debug)]
pub struct WorkspaceClient {
    socket: PathBuf,
    /// Until when it is not asked.
    rests: Mutex<Option<Instant>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceFailure {
    #[error("the companion of the workspace cannot be reached: {0}")]
    Unreachable(io::Error),
    #[error("the companion of the workspace was late")]
    Late,
    #[error("the companion of the workspace was late, and is asked again in a few seconds")]
    Resting,
    #[error("the question cannot be asked, or its answer is none: {0}")]
    Wrong(#[from] ProtocolError),
}

impl WorkspaceClient {
    /// Asks the companion at a socket. Nothing is opened before the first question.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket, rests: Mutex::new(None) }
    }

    /// Asks, and waits at most 50 ms. It blocks its thread.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask(&self, question: &WorkspaceQuestion) -> Result<WorkspaceAnswer, WorkspaceFailure> {
        let framed = protocol::framed(question, MOST_QUESTION)?;
        self.exchange(&framed, Instant::now() + PATIENCE)
    }

    /// Asks where others wait for the answer, at most so long: a companion that was late is left alone for a while.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask_in_passing(
        &self,
        question: &WorkspaceQuestion,
        patience: Duration,
    ) -> Result<WorkspaceAnswer, WorkspaceFailure> {
        let framed = protocol::framed(question, MOST_QUESTION)?;
        if self.is_resting() {
            return Err(WorkspaceFailure::Resting);
        }
        let answer = self.exchange(&framed, Instant::now() + patience.min(PATIENCE));
        if matches!(answer, Err(WorkspaceFailure::Late)) {
            *self.rests.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + REST);
        }
        answer
    }

    fn is_resting(&self) -> bool {
        let rests = *self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        rests.is_some_and(|until| Instant::now() < until)
    }

    fn exchange(&self, question: &[u8], until: Instant) -> Result<WorkspaceAnswer, WorkspaceFailure> {
        let mut stream = Waiting { stream: self.connect().map_err(failure)?, until };
        stream.send(question).map_err(failure)?;
        let mut prefix = [0; PREFIX];
        stream.fill(&mut prefix).map_err(failure)?;
        let mut json = vec![0; protocol::length(prefix, MOST_ANSWER)?];
        stream.fill(&mut json).map_err(failure)?;
        Ok(protocol::parsed(&json)?)
    }

    /// Where the queue of the socket is full, connecting fails at once, as it would wait without a bound.
    fn connect(&self) -> io::Result<UnixStream> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(&self.socket)?)?;
        socket.set_nonblocking(false)?;
        Ok(socket.into())
    }
}

fn failure(error: io::Error) -> WorkspaceFailure {
    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
        WorkspaceFailure::Late
    } else {
        WorkspaceFailure::Unreachable(error)
    }
}

/// A connection on which nothing waits longer than until then.
struct Waiting {
    stream: UnixStream,
    until: Instant,
}

impl Waiting {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(self.left()?)?;
            match self.stream.write(bytes) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            self.stream.set_read_timeout(self.left()?)?;
            match self.stream.read(rest) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// What is asked of a companion that does this with its connection.
    fn asked(behave: impl FnOnce(UnixStream) + Send + 'static) -> Result<WorkspaceAnswer, WorkspaceFailure> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let companion = thread::spawn(move || behave(listener.accept().unwrap().0));
        let answer = WorkspaceClient::new(path).ask(&WorkspaceQuestion::Map);
        companion.join().unwrap();
        answer
    }

    /// Reads the question to its end.
    fn read(stream: &mut UnixStream) {
        let mut prefix = [0; PREFIX];
        stream.read_exact(&mut prefix).unwrap();
        stream.read_exact(&mut vec![0; protocol::length(prefix, MOST_QUESTION).unwrap()]).unwrap();
    }

    fn says(bytes: Vec<u8>) -> impl FnOnce(UnixStream) + Send {
        move |mut stream| {
            read(&mut stream);
            // The client may have gone.
            let _ = stream.write_all(&bytes);
        }
    }

    #[test]
    fn an_answer_is_had() {
        let page = WorkspaceAnswer::Page("a".to_owned());
        let framed = protocol::framed(&page, MOST_ANSWER).unwrap();
        assert_eq!(asked(says(framed)).unwrap(), page);
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for bytes in [vec![], vec![0, 0, 0, 9, b'{'], vec![0, 0]] {
            assert!(matches!(asked(says(bytes)), Err(WorkspaceFailure::Unreachable(_))));
        }
        for bytes in [vec![0xff; 8], vec![0, 0, 0, 2, b'{', b'}']] {
            assert!(matches!(asked(says(bytes)), Err(WorkspaceFailure::Wrong(_))));
        }
        let nobody = WorkspaceClient::new("/nonexistent/s".into());
        assert!(matches!(nobody.ask(&WorkspaceQuestion::Map), Err(WorkspaceFailure::Unreachable(_))));
    }

    #[test]
    fn a_companion_that_is_silent_is_waited_for_once_and_then_rests() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        // It accepts nothing: the kernel takes the question.
        let _listener = UnixListener::bind(&path).unwrap();
        let client = WorkspaceClient::new(path);
        let ask = || client.ask_in_passing(&WorkspaceQuestion::Map, PATIENCE);
        assert!(matches!(ask(), Err(WorkspaceFailure::Late)));
        assert!(matches!(ask(), Err(WorkspaceFailure::Resting)));
        assert!(
            matches!(client.ask(&WorkspaceQuestion::Map), Err(WorkspaceFailure::Late)),
            "nobody waits for this"
        );
    }

    #[test]
    fn a_companion_whose_queue_is_full_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let client = WorkspaceClient::new(path);
        let waiting: Vec<_> = (0..8).map_while(|_| client.connect().ok()).collect();
        assert!(waiting.len() < 8, "the queue is never full");
        assert!(matches!(client.ask(&WorkspaceQuestion::Map), Err(WorkspaceFailure::Late)));
    }
}
