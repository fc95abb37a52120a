//! A file as it is, or what it decompresses to where its first bytes are those of gzip or zstd; within bounds.

use std::io::{self, Read};

use crate::wire::coding::{CodingError, Decoder, Limits, Wrote, betrayed_by};

/// How many bytes are read, and decompressed, at once.
const CHUNK: usize = 64 << 10;

/// The largest window of a zstd frame, in bytes: what `zstd` itself reads without an option.
const WINDOW: u64 = 128 << 20;

/// From so many bytes on, compressed data may become at most so many times as long: each event has ids and digests, which
/// compress to a twentieth at best, so that what becomes longer is made to cost time.
const FREE_BYTES: u64 = 64 << 20;
const MOST_TIMES: u64 = 256;

/// The first bytes of a ledger.
const STORE: &[u8] = b"SQLite format 3\0";

/// Reads through to a file, and decompresses it where it is compressed.
///
/// Damaged or cut data is an error of the kind `InvalidData` behind everything that could be read.
pub struct Unpacked<R> {
    file: R,
    form: Form,
    /// Bytes that were read and not used yet, from `used` on.
    input: Vec<u8>,
    used: usize,
    /// Decompressed bytes that were not given yet, from `given` on.
    output: Vec<u8>,
    given: usize,
    bytes_in: u64,
    bytes_out: u64,
}

enum Form {
    /// The first bytes could be those of several forms.
    Undecided,
    Plain,
    Compressed(Decoder),
    /// What came out before the fault is given first.
    Faulty(&'static str),
    Ended,
}

impl<R: Read> Unpacked<R> {
    pub fn new(file: R) -> Self {
        Self {
            file,
            form: Form::Undecided,
            input: Vec::new(),
            used: 0,
            output: Vec::new(),
            given: 0,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// Reads on behind the bytes that are not used yet. Returns whether there was something.
    fn fill(&mut self) -> io::Result<bool> {
        self.input.drain(..self.used);
        self.used = 0;
        let length = self.input.len();
        self.input.resize(length + CHUNK, 0);
        let read = self.file.read(self.input.get_mut(length..).unwrap_or_default());
        self.input.truncate(length + *read.as_ref().unwrap_or(&0));
        self.bytes_in += *read.as_ref().unwrap_or(&0) as u64;
        Ok(read? > 0)
    }

    /// Looks at the first bytes until they say the form. Returns whether they did; a file that grows may say it later.
    fn decide(&mut self) -> io::Result<bool> {
        while is_beginning(&self.input) {
            if !self.fill()? {
                return Ok(false);
            }
        }
        if self.input.starts_with(STORE) {
            return Err(io::Error::other("a ledger cannot be read through a pipe: name its file"));
        }
        let limits = Limits { chunk_bytes: CHUNK, decoded_bytes: u64::MAX, zstd_window_bytes: WINDOW };
        let decoder = betrayed_by(&self.input).and_then(|name| Decoder::for_header(name, limits).ok()?);
        self.form = decoder.map_or(Form::Plain, Form::Compressed);
        Ok(true)
    }

    /// Decompresses until something came out. Returns whether there was something.
    fn unpack(&mut self) -> io::Result<bool> {
        self.output.clear();
        self.given = 0;
        loop {
            match &mut self.form {
                Form::Compressed(_) => {}
                Form::Faulty(why) => {
                    let fault = format!("{why}; nothing behind that was read");
                    self.form = Form::Ended;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, fault));
                }
                Form::Undecided | Form::Plain | Form::Ended => return Ok(false),
            }
            let is_used_up = self.decode();
            if !self.output.is_empty() {
                return Ok(true);
            }
            if is_used_up && !self.fill()? {
                self.end();
            }
        }
    }

    /// Decompresses once. Returns whether more bytes of the file are needed.
    fn decode(&mut self) -> bool {
        let Form::Compressed(decoder) = &mut self.form else { return false };
        let mut rest = self.input.get(self.used..).unwrap_or_default();
        let length = rest.len();
        let wrote = decoder.write(&mut rest, &mut self.output);
        self.used += length - rest.len();
        self.bytes_out += self.output.len() as u64;
        let is_bomb = self.bytes_out > FREE_BYTES && self.bytes_out / MOST_TIMES > self.bytes_in;
        match wrote {
            Ok(_) if is_bomb => {
                self.form = Form::Faulty("the compressed data becomes more than 256 times as long")
            }
            Ok(wrote) => return wrote == Wrote::All,
            Err(CodingError::Window) => {
                self.form = Form::Faulty("the compressed data wants a window over 128 MiB")
            }
            Err(_) => self.form = Form::Faulty("the compressed data is damaged"),
        }
        false
    }

    /// Ends at the end of the file.
    fn end(&mut self) {
        let Form::Compressed(decoder) = &mut self.form else { return };
        self.form = match decoder.finish() {
            Ok(()) => Form::Ended,
            Err(_) => Form::Faulty("the compressed data ends too early"),
        };
    }
}

/// Whether the first bytes, so far, are the beginning of a form that is not plain, and do not say which.
fn is_beginning(bytes: &[u8]) -> bool {
    let begins = |magic: &[u8]| bytes.len() < magic.len() && magic.starts_with(bytes);
    let is_skippable_frame = match bytes {
        [0x50..=0x5f, rest @ ..] => rest.len() < 3 && [0x2a, 0x4d, 0x18].starts_with(rest),
        _ => false,
    };
    begins(&[0x1f, 0x8b, 0x08]) || begins(&[0x28, 0xb5, 0x2f, 0xfd]) || begins(STORE) || is_skippable_frame
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if matches!(self.form, Form::Undecided) && !self.decide()? {
            return Ok(0);
        }
        let is_plain = matches!(self.form, Form::Plain);
        if is_plain && self.used == self.input.len() {
            return self.file.read(buffer);
        }
        if !is_plain && self.given == self.output.len() && !self.unpack()? {
            return Ok(0);
        }
        let (from, at) =
            if is_plain { (&self.input, &mut self.used) } else { (&self.output, &mut self.given) };
        let rest = from.get(*at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        *at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use compression_codecs::core::Level;
    use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
    use compression_codecs::{EncodeV2, GzipEncoder, ZstdEncoder};

    use super::*;

    fn packed(mut codec: impl EncodeV2, data: &[u8]) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        let mut input = PartialBuffer::new(data);
        while !input.unwritten().is_empty() {
            let mut out = WriteBuffer::new_initialized(&mut buffer);
            codec.encode(&mut input, &mut out).unwrap();
            all.write_all(out.written()).unwrap();
        }
        loop {
            let mut out = WriteBuffer::new_initialized(&mut buffer);
            let is_done = codec.finish(&mut out).unwrap();
            all.write_all(out.written()).unwrap();
            if is_done {
                return all;
            }
        }
    }

    fn gzip(data: &[u8]) -> Vec<u8> {
        packed(GzipEncoder::new(Level::Default.into()), data)
    }

    fn zstd(data: &[u8]) -> Vec<u8> {
        packed(ZstdEncoder::new(3), data)
    }

    /// Gives one byte at a time, and an end between any two.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            let Some((first, rest)) = self.0.split_first().filter(|_| self.1) else { return Ok(0) };
            (buffer[0], self.0) = (*first, rest);
            Ok(1)
        }
    }

    fn text() -> Vec<u8> {
        (0..200_000).flat_map(|n: u32| format!("{{\"n\": {n}}}\n").into_bytes()).collect()
    }

    #[test]
    fn a_file_reads_the_same_in_each_form() {
        let text = text();
        let halves = text.split_at(text.len() / 2);
        let two_members = [gzip(halves.0), gzip(halves.1)].concat();
        let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &zstd(&text)].concat();
        for file in [text.clone(), gzip(&text), zstd(&text), two_members, skippable] {
            let mut read = Vec::new();
            Unpacked::new(file.as_slice()).read_to_end(&mut read).unwrap();
            assert!(read == text);
        }
        for short in ["", "(", "P", "S", "SQLite", "{", "\x1f"] {
            let mut read = String::new();
            Unpacked::new(short.as_bytes()).read_to_string(&mut read).unwrap();
            assert!(short.starts_with(&read), "{short:?}");
        }
    }

    #[test]
    fn a_file_that_grows_is_read_on() {
        let mut reader = Unpacked::new(Slow(b"(a\nSQL", false));
        let (mut read, mut buffer) = (Vec::new(), [0; 8]);
        for _ in 0..20 {
            let count = reader.read(&mut buffer).unwrap();
            read.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(read, b"(a\nSQL");
    }

    #[test]
    fn what_was_read_before_a_fault_is_given_and_then_the_fault() {
        let text = text();
        for file in [gzip(&text), zstd(&text)] {
            let mut damaged = file.clone();
            damaged[file.len() - 3] ^= 0xff;
            let mut trailing = file.clone();
            trailing.extend_from_slice(b"not compressed");
            for (file, least) in [
                (&file[..file.len() - 1], 1),
                (&file[..file.len() / 2], 1),
                (&damaged, 1),
                (&trailing, text.len()),
            ] {
                let (mut read, mut reader) = (Vec::new(), Unpacked::new(file));
                let error = reader.read_to_end(&mut read).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
                assert!(error.to_string().ends_with("nothing behind that was read"), "{error}");
                assert!(read.len() >= least && text.starts_with(&read), "{} bytes", read.len());
                assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0, "and then it ends");
            }
        }
    }

    #[test]
    fn what_becomes_far_too_long_is_left_and_plain_data_is_not() {
        let zeros = vec![0; 200 << 20];
        for bomb in [gzip(&zeros), zstd(&zeros)] {
            let mut reader = Unpacked::new(bomb.as_slice());
            let error = io::copy(&mut reader, &mut io::sink()).unwrap_err();
            assert!(error.to_string().contains("256 times"), "{error}");
            assert!(reader.bytes_out <= FREE_BYTES + CHUNK as u64);
            assert!(reader.output.capacity() <= 4 * CHUNK && reader.input.capacity() <= 4 * CHUNK);
        }
        let mut reader = Unpacked::new(zeros.as_slice());
        assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), zeros.len() as u64);
    }

    #[test]
    fn a_ledger_behind_a_pipe_is_said_and_not_read() {
        let error = Unpacked::new(STORE).read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.to_string(), "a ledger cannot be read through a pipe: name its file");
    }
}
