//! Reads lines of events back, bounded, from files that somebody else may write or have written.

use std::io::{self, BufRead, BufReader, Read};

/// The longest line that is kept, in bytes: an event with the largest input of a call that the gateway's default bound
/// lets by, every byte of it escaped.
const MOST_BYTES: usize = 8 << 20;

/// The next line of a file, where there is one.
#[derive(Debug, PartialEq, Eq)]
pub enum NextLine<'a> {
    /// A line, without its break.
    Line(&'a [u8]),
    /// A line that was too long to keep.
    TooLong,
    /// The end for now. Where a file grows, more may come later, and a line that has begun is kept until then.
    End {
        /// The bytes of a last line that does not end.
        torn: u64,
    },
}

/// Lines of one reader.
pub struct EventLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// The bytes of the line that has begun, those that were not kept included.
    length: u64,
}

impl<R: Read> EventLines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), line: Vec::new(), length: 0 }
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// Reading failed.
    pub fn read(&mut self) -> io::Result<NextLine<'_>> {
        if self.length == 0 {
            self.line.clear();
        }
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                return Ok(NextLine::End { torn: self.length });
            }
            let end = memchr::memchr(b'\n', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            let room = MOST_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.length += piece.len() as u64;
            let taken = piece.len() + usize::from(end.is_some());
            self.reader.consume(taken);
            if end.is_some() {
                let is_whole = self.length == self.line.len() as u64;
                self.length = 0;
                return Ok(if is_whole { NextLine::Line(&self.line) } else { NextLine::TooLong });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the pieces one by one, and an end between any two.
    struct Growing(Vec<Vec<u8>>);

    impl Read for Growing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn lines_come_whole_and_a_torn_one_is_kept_until_it_ends() {
        let pieces = ["a\n\nb", "c\nd", "", "e\n"].map(|piece| piece.as_bytes().to_vec());
        let mut lines = EventLines::new(Growing(pieces.to_vec()));
        assert_eq!(lines.read().unwrap(), NextLine::Line(b"a"));
        assert_eq!(lines.read().unwrap(), NextLine::Line(b""));
        assert_eq!(lines.read().unwrap(), NextLine::Line(b"bc"));
        assert_eq!(lines.read().unwrap(), NextLine::End { torn: 1 });
        assert_eq!(lines.read().unwrap(), NextLine::Line(b"de"));
        assert_eq!(lines.read().unwrap(), NextLine::End { torn: 0 });
    }

    #[test]
    fn a_line_without_an_end_takes_no_memory_beyond_the_bound() {
        let endless = io::repeat(b'x').take(3 * MOST_BYTES as u64);
        let mut lines = EventLines::new(endless.chain(&b"\nafter\n"[..]));
        assert_eq!(lines.read().unwrap(), NextLine::TooLong);
        assert!(lines.line.capacity() <= 2 * MOST_BYTES);
        assert_eq!(lines.read().unwrap(), NextLine::Line(b"after"));
    }
}
