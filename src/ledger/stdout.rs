//! Events as JSON, one object a line: on standard output, or into any other writer.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use super::Sink;
use crate::event::Event;

/// With so many bytes held back, a write does not wait for the flush.
const FULL: usize = 64 * 1024;

/// How long a descriptor that another process has set non-blocking is left alone when it is full.
const PAUSE: Duration = Duration::from_millis(5);

/// Writes whole lines. After a failure it begins a new line, so that a torn one spoils no other.
#[derive(Debug)]
pub struct JsonLines<W> {
    writer: W,
    held: Vec<u8>,
    torn: bool,
}

impl JsonLines<File> {
    /// Standard output, unbuffered below us.
    pub fn stdout() -> io::Result<Self> {
        Ok(Self::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)))
    }
}

impl<W: Write + Send> JsonLines<W> {
    pub fn new(writer: W) -> Self {
        Self { writer, held: Vec::new(), torn: false }
    }

    fn write_held(&mut self) -> io::Result<()> {
        let mut rest = self.held.as_slice();
        let outcome = loop {
            if rest.is_empty() {
                break Ok(());
            }
            match self.writer.write(rest) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
                Err(error) => break Err(error),
            }
        };
        let written = self.held.len() - rest.len();
        if let Some(last) = written.checked_sub(1).and_then(|last| self.held.get(last)) {
            self.torn = *last != b'\n';
        }
        self.held.clear();
        outcome
    }
}

impl<W: Write + Send> Sink for JsonLines<W> {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        if self.torn && self.held.is_empty() {
            self.held.push(b'\n');
        }
        serde_json::to_writer(&mut self.held, event)?;
        self.held.push(b'\n');
        if self.held.len() >= FULL {
            self.write_held()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_held()?;
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Decision, Verdict};
    use crate::event::{Http, Kind};
    use crate::ledger::fresh_id;

    /// Takes so many bytes, then fails until it is mended.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
        error: io::ErrorKind,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            self.taken.extend_from_slice(&bytes[..n]);
            self.room -= n;
            match n {
                0 => {
                    self.room = usize::MAX;
                    Err(self.error.into())
                }
                n => Ok(n),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn event() -> Event {
        Event::new(fresh_id(), Kind::Request, Decision::of(Verdict::Allow))
    }

    fn lines(bytes: &[u8]) -> Vec<&str> {
        std::str::from_utf8(bytes).unwrap().lines().collect()
    }

    #[test]
    fn an_event_is_one_line_whatever_it_holds() {
        let mut sink = JsonLines::new(Vec::new());
        let path = "/a\nb\r\u{2028}\0\"}".to_owned();
        sink.write(&Event { http: Some(Http { path: path.clone(), ..Http::default() }), ..event() }).unwrap();
        sink.flush().unwrap();
        assert_eq!(sink.writer.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read: serde_json::Value = serde_json::from_slice(&sink.writer).unwrap();
        assert_eq!(read["http"]["path"], path);
        assert!(sink.writer.starts_with(b"{\"apiVersion\":\"postern.dev/event/v1\",\"id\":\""));
    }

    #[test]
    fn nothing_is_written_before_the_flush_unless_much_is_held() {
        let mut sink = JsonLines::new(Vec::new());
        sink.write(&event()).unwrap();
        assert!(sink.writer.is_empty());
        while sink.writer.is_empty() {
            sink.write(&event()).unwrap();
        }
        assert!(sink.writer.len() >= FULL);
    }

    #[test]
    fn a_torn_line_spoils_no_other() {
        let narrow = Narrow { taken: Vec::new(), room: 20, error: io::ErrorKind::StorageFull };
        let mut sink = JsonLines::new(narrow);
        sink.write(&event()).unwrap();
        assert!(sink.flush().is_err());
        sink.write(&event()).unwrap();
        sink.write(&event()).unwrap();
        sink.flush().unwrap();
        let lines = lines(&sink.writer.taken);
        assert_eq!(lines.len(), 3);
        assert!(lines[1..].iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }

    #[test]
    fn a_closed_pipe_is_an_error_and_no_end_of_the_process() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut sink = JsonLines::new(writer);
        for _ in 0..2 {
            sink.write(&event()).unwrap();
            assert_eq!(sink.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        }
    }

    #[test]
    fn a_full_non_blocking_pipe_is_waited_for() {
        let narrow = Narrow { taken: Vec::new(), room: 20, error: io::ErrorKind::WouldBlock };
        let mut sink = JsonLines::new(narrow);
        sink.write(&event()).unwrap();
        sink.flush().unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&sink.writer.taken).is_ok());
    }
}
