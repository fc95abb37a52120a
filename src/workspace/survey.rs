//! Walks over the workspace and writes the outlines of its files, the highest directories first, as far as there is time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::MOST_ENTRIES;
use super::outline::{is_source, outline};
use super::page::{Full, Page};
use super::root::{Root, Unread};

/// Directories that hold what others wrote or programs made.
const SKIPPED: &[&str] = &[
    ".bzr",
    ".cache",
    ".git",
    ".gradle",
    ".hg",
    ".idea",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".terraform",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "bower_components",
    "build",
    "coverage",
    "dist",
    "node_modules",
    "obj",
    "out",
    "site-packages",
    "target",
    "vendor",
    "venv",
];

/// How deep directories are walked into.
const MOST_DEPTH: usize = 32;

/// The most lines of one file in the map.
const MOST_IN_MAP: usize = 40;

/// What an answer lacks.
#[derive(Default)]
struct Lack {
    /// Source files that were seen and are not on the page.
    files: usize,
    /// More is there than was looked at.
    has_more: bool,
    /// There was no time for the rest.
    is_late: bool,
    is_full: bool,
}

impl Lack {
    /// Whether nothing more goes on the page.
    fn ends(&self) -> bool {
        self.is_late || self.is_full
    }

    fn text(&self) -> String {
        let why = match self {
            Self { is_late: true, .. } => "there was no time for more",
            Self { is_full: true, .. } => "the page is full",
            Self { has_more: true, .. } => "there are more files than are looked at",
            _ => return "Nothing is left out but links, what is no text of at most 1 MiB, and directories of tools.".into(),
        };
        format!(
            "Something is left out ({} source files that were seen): {why}. Ask for the anatomy of a part.",
            self.files
        )
    }
}

/// The outlines of all source files, breadth first, each directory in the order of names.
pub(super) fn map(root: &Root, is_late: impl Fn() -> bool) -> String {
    let (mut page, mut lack, mut left) = (Page::new(), Lack::default(), MOST_ENTRIES);
    let mut queue = VecDeque::from([(PathBuf::from("."), 0)]);
    while let Some((directory, depth)) = queue.pop_front() {
        lack.is_late |= is_late();
        if lack.ends() || left == 0 {
            lack.has_more = true;
            break;
        }
        // One that is gone, or may not be read, has nothing.
        let Ok((entries, more)) = root.entries(&directory, left, &is_late) else { continue };
        lack.has_more |= more;
        left -= entries.len().min(left);
        for entry in entries {
            let path = joined(&directory, &entry.name);
            if entry.is_directory {
                let is_walked = depth < MOST_DEPTH && !SKIPPED.contains(&entry.name.as_str());
                queue.extend(is_walked.then_some((path, depth + 1)));
            } else if is_source(&entry.name) {
                lack.is_late |= is_late();
                let has_room = !lack.ends();
                lack.is_full |= has_room && file(root, &path, MOST_IN_MAP, &mut page) == Err(Full);
                lack.files += usize::from(lack.ends());
            }
        }
    }
    page.end(&lack.text())
}

/// What is in a directory with the outlines of its files, or the whole outline of a file.
///
/// # Errors
/// Why there is none.
pub(super) fn anatomy(root: &Root, path: &Path, is_late: impl Fn() -> bool) -> Result<String, Unread> {
    let mut page = Page::new();
    let mut lack = Lack::default();
    let Ok((entries, more)) = root.entries(path, MOST_ENTRIES, &is_late) else {
        // It may be a file.
        root.text(path)?;
        lack.is_full = file(root, path, usize::MAX, &mut page) == Err(Full);
        lack.files = usize::from(lack.is_full);
        return Ok(page.end(&lack.text()));
    };
    lack.has_more = more;
    let (directories, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.is_directory);
    for directory in directories {
        lack.is_full |= page.name(&format!("{}/", joined(path, &directory.name).display())) == Err(Full);
    }
    for entry in files {
        let path = joined(path, &entry.name);
        lack.is_late |= is_late();
        let is_source = is_source(&entry.name);
        let added = if lack.ends() {
            Err(Full)
        } else if is_source {
            file(root, &path, usize::MAX, &mut page)
        } else {
            page.name(&path.display().to_string())
        };
        lack.is_full |= !lack.is_late && added.is_err();
        lack.files += usize::from(added.is_err() && is_source);
    }
    Ok(page.end(&lack.text()))
}

/// Adds a file with its outline; what cannot be read has none.
fn file(root: &Root, path: &Path, most: usize, page: &mut Page) -> Result<(), Full> {
    let name = path.display().to_string();
    let Ok(text) = root.text(path) else { return Ok(()) };
    let mut lines = outline(&name, &text);
    page.name(&name)?;
    lines.by_ref().take(most).try_for_each(|line| page.outline(line))?;
    match lines.count() {
        0 => Ok(()),
        more => page.remark(&format!("{more} more such lines")),
    }
}

fn joined(directory: &Path, name: &str) -> PathBuf {
    if directory == Path::new(".") { PathBuf::from(name) } else { directory.join(name) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::open(directory.path()).unwrap();
        (directory, root)
    }

    fn body(page: &str) -> Vec<&str> {
        let mut lines: Vec<_> = page.lines().skip(1).collect();
        lines.pop();
        lines
    }

    #[test]
    fn a_map_has_the_outlines_of_source_files_from_the_top_down_and_nothing_of_tools() {
        let (_place, root) = workspace(&[
            ("src/deep/c.py", "class C:\n  def run(self):\n"),
            ("src/b.rs", "use x;\nfn b() {}\n"),
            ("a.go", "package main\n"),
            ("readme.md", "# fn no() {}\n"),
            ("target/x.rs", "fn x() {}\n"),
            ("src/node_modules/y.js", "function y() {}\n"),
            (".git/z.rb", "def z\n"),
        ]);
        let page = map(&root, || false);
        let expected = ["a.go", "  1: package main", "src/b.rs", "  2: fn b() {}", "src/deep/c.py"];
        let rest = ["  1: class C:", "  2:   def run(self):"];
        assert_eq!(body(&page), [&expected[..], &rest].concat(), "{page}");
        assert!(page.ends_with("directories of tools.\n"), "{page}");
    }

    #[test]
    fn a_map_says_what_it_has_no_time_for() {
        let (_place, root) = workspace(&[("a.rs", "fn a() {}\n"), ("b.rs", "fn b() {}\n")]);
        assert!(map(&root, || true).contains("no time"));
        let asked = std::cell::Cell::new(0);
        // In time for the directory and one file.
        let page = map(&root, || asked.replace(asked.get() + 1) > 1);
        assert_eq!(body(&page), ["a.rs", "  1: fn a() {}"]);
        assert!(page.contains("left out (1 source files that were seen): there was no time"), "{page}");
    }

    #[test]
    fn one_file_does_not_fill_the_map_and_many_fill_it_to_its_bound() {
        let long = "fn a() {}\n".repeat(MOST_IN_MAP + 2);
        let (place, root) = workspace(&[("a.rs", &long)]);
        assert!(map(&root, || false).contains("  … 2 more such lines\n"));
        let whole = anatomy(&root, Path::new("a.rs"), || false).unwrap();
        assert_eq!(body(&whole).len(), MOST_IN_MAP + 3, "{whole}");
        for number in 0..100 {
            fs::write(place.path().join(format!("{number}.rs")), &long).unwrap();
        }
        assert!(map(&root, || false).contains("the page is full"));
    }

    #[test]
    fn the_anatomy_of_a_directory_names_everything_in_it() {
        let (_place, root) = workspace(&[
            ("src/sub/x.rs", "fn x() {}\n"),
            ("src/b.rs", "fn b() {}\n"),
            ("src/target/y.rs", ""),
            ("src/data.bin", "\0"),
        ]);
        let page = anatomy(&root, Path::new("src"), || false).unwrap();
        let expected = ["src/sub/", "src/target/", "src/b.rs", "  1: fn b() {}", "src/data.bin"];
        assert_eq!(body(&page), expected, "{page}");
        assert_eq!(anatomy(&root, Path::new("none"), || false), Err(Unread::Missing));
        assert_eq!(anatomy(&root, Path::new("src/data.bin"), || false), Err(Unread::NotText));
    }
}
