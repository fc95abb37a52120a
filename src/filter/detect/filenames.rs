//! Finds the names of files in the parts of a form, as they come.

use memchr::memchr_iter;

use crate::wire::percent;

/// The longest line that is read: parts with longer heads have no name that a server reads.
const LONGEST: usize = 2 << 10;
const HEAD: &[u8] = b"content-disposition:";

/// The lines of a form, of which those are read that name a file.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// The beginning of the line that has not ended.
    line: Vec<u8>,
}

impl FileNames {
    /// Takes the next bytes, and returns the names in lines that have ended.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let (mut names, mut at) = (Vec::new(), 0);
        for end in memchr_iter(b'\n', bytes) {
            self.add(bytes.get(at..end).unwrap_or_default());
            names.extend(of_line(&self.line));
            self.line.clear();
            at = end + 1;
        }
        self.add(bytes.get(at..).unwrap_or_default());
        names
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = LONGEST - self.line.len();
        self.line.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

/// The names in a line (RFC 7578, section 4.2; RFC 6266, section 4.3 for `filename*`, which clients send too).
fn of_line(line: &[u8]) -> Vec<String> {
    let head = line.get(..HEAD.len()).unwrap_or_default();
    if !head.eq_ignore_ascii_case(HEAD) {
        return Vec::new();
    }
    let line = String::from_utf8_lossy(line);
    let named = line.match_indices("filename").filter_map(|(at, word)| {
        let value =
            line.get(at + word.len()..)?.trim_start_matches('*').trim_start().strip_prefix('=')?.trim_start();
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => value.split([';', ' ', '\r']).next()?,
        };
        let value = value.split_once("''").map_or(value, |(_, value)| value);
        Some(String::from_utf8_lossy(&percent::decode(value.as_bytes())).into_owned())
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_files_are_found_wherever_the_form_is_cut() {
        let form = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a/.env\"\r\n\r\ntext\r\n--b\r\n\
                     content-disposition: form-data; filename=b.txt; filename*=UTF-8''%2Eenv\r\n\r\nfilename=\"c\"\r\n--b--";
        for size in [1, 3, 50, 1_000] {
            let mut names = FileNames::default();
            let found: Vec<String> = form.chunks(size).flat_map(|piece| names.take(piece)).collect();
            assert_eq!(found, ["a/.env", "b.txt", ".env"], "{size}");
        }
    }

    #[test]
    fn a_line_without_an_end_takes_little_room() {
        let mut names = FileNames::default();
        (0..100).for_each(|_| drop(names.take(&[b'a'; 10_000])));
        assert_eq!(names.line.len(), LONGEST);
    }
}
