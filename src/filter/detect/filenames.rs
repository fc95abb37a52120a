//! Finds the names of files in the parts of a form, as they come.

use crate::wire::percent;

/// The longest line that is read: parts with longer heads have no name that a server reads.
const LONGEST: usize = 2 << 10;
const HEAD: &[u8] = b"content-disposition:";
const WORD: &[u8] = b"filename";

/// The lines of a form, of which those are read that name a file.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// The beginning of the line that has not ended.
    line: Vec<u8>,
    /// Whether it goes on only if a space comes next (RFC 5322, section 2.2.3).
    may_fold: bool,
}

impl FileNames {
    /// Takes the next bytes, and returns the names in lines that have ended.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if std::mem::take(&mut self.may_fold) && !part.starts_with(b" ") && !part.starts_with(b"\t") {
                names.extend(of_line(&self.line));
                self.line.clear();
            }
            let text = part.strip_suffix(b"\n");
            self.may_fold = text.is_some();
            let room = LONGEST - self.line.len();
            let text = text.unwrap_or(part);
            self.line.extend_from_slice(text.get(..room).unwrap_or(text));
        }
        names
    }
}

/// The names in a line (RFC 7578, section 4.2; RFC 6266, section 4.3 for `filename*`, which clients send too).
fn of_line(line: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    if !line.get(..HEAD.len()).is_some_and(|head| head.eq_ignore_ascii_case(HEAD)) {
        return names;
    }
    let mut rest = line;
    while let Some(at) = rest.windows(WORD.len()).position(|word| word.eq_ignore_ascii_case(WORD)) {
        rest = rest.get(at + WORD.len()..).unwrap_or_default();
        let value = rest.strip_prefix(b"*").unwrap_or(rest).trim_ascii_start();
        if let Some(value) = value.strip_prefix(b"=") {
            let (name, behind) = value_of(value.trim_ascii_start());
            names.push(name);
            rest = behind;
        }
    }
    names
}

/// A value, and what stands behind it.
fn value_of(text: &[u8]) -> (String, &[u8]) {
    let quoted = text.strip_prefix(b"\"");
    let (text, ends): (_, &[u8]) = quoted.map_or((text, b"; \t\r"), |quoted| (quoted, b"\""));
    let end = text.iter().position(|byte| ends.contains(byte)).unwrap_or(text.len());
    let (value, behind) = text.split_at(end);
    let charset = memchr::memmem::find(value, b"''").map(|at| at + 2);
    let value = charset.and_then(|at| value.get(at..)).unwrap_or(value);
    (String::from_utf8_lossy(&percent::decode(value)).into_owned(), behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_files_are_found_wherever_the_form_is_cut() {
        let form = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a/.env\"\r\n\r\ntext\r\n--b\r\n\
                     content-disposition: form-data; filename=b.txt; filename*=UTF-8''%2Eenv\r\n\r\nfilename=\"c\"\r\n--b\r\n\
                     Content-Disposition: form-data;\r\n\tFileName = \"d\"; filename=e\r\n\r\n--b--";
        for size in [1, 3, 50, 1_000] {
            let mut names = FileNames::default();
            let found: Vec<String> = form.chunks(size).flat_map(|piece| names.take(piece)).collect();
            assert_eq!(found, ["a/.env", "b.txt", ".env", "d", "e"], "{size}");
        }
    }

    #[test]
    fn a_line_without_an_end_takes_little_room() {
        let mut names = FileNames::default();
        (0..100).for_each(|_| drop(names.take(&[b'a'; 10_000])));
        assert_eq!(names.line.len(), LONGEST);
    }

    #[test]
    fn a_line_is_read_once_however_many_names_it_has() {
        let line = [HEAD, &b"filename=\"".repeat(200)].concat();
        let bytes: usize = of_line(&line).iter().map(String::len).sum();
        assert!(bytes <= line.len());
    }
}
