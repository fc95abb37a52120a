//! `Within`: a path under a directory, component by component and by its text alone (symbolic links are not followed).

use serde_json::Value;

use crate::policy::section::tool::written::Scalar;
use crate::yaml::field;

use super::{Compared, Comparing, Operator, ParamValue, Reading, Wrong, read};

/// Under any of these directories, each as its components, or the directory itself.
#[derive(Debug)]
pub(super) struct Within(Vec<Vec<String>>);

impl Within {
    pub(super) fn new(values: &[Scalar]) -> Result<Self, Wrong> {
        read(values, |value| match value {
            Scalar::Text(text) => {
                not_a_pattern(text)?;
                let directory =
                    components(text, Reading::Strict).map(|all| all.into_iter().map(str::to_owned).collect());
                directory.ok_or_else(|| "expected an absolute path, as in /workspace".to_owned())
            }
            Scalar::Number(_) | Scalar::Bool(_) => Err("expected a path in quotes".to_owned()),
        })
        .map(Self)
    }
}

/// # Errors
/// The text is what other languages call a glob: hardly any directory is called so, and a rule about one would never hold.
fn not_a_pattern(text: &str) -> Result<(), String> {
    let is_glob = |part: &str| part.contains(['*', '?']);
    if !text.starts_with('/') || !is_glob(text) {
        return Ok(());
    }
    let above: Vec<&str> = text.split('/').take_while(|part| !is_glob(part)).collect();
    let rest = text.split('/').skip(above.len());
    let above = Some(above.join("/")).filter(|above| !above.is_empty()).unwrap_or_else(|| "/".to_owned());
    let remedy = if rest.into_iter().all(|part| part.chars().all(|c| c == '*')) {
        format!("write {}", field::plainly(&above))
    } else {
        format!("write {}, or a regular expression with `Matches`", field::plainly(&above))
    };
    Err(format!("is no pattern; a directory covers all that is below it: {remedy}"))
}

impl Within {
    /// Whether a path is under one of the directories; none where its text does not say which file it is.
    fn covers(&self, text: &str, reading: Reading) -> Option<bool> {
        let path = components(text, reading)?;
        let under = |directory: &Vec<String>| {
            path.len() >= directory.len() && directory.iter().zip(&path).all(|(own, other)| own == other)
        };
        Some(self.0.iter().any(under))
    }
}

impl Operator for Within {
    fn compare(&self, element: &ParamValue<'_>, Comparing { reading, directory }: Comparing<'_>) -> Compared {
        let text = match element {
            ParamValue::Text(text) => text,
            ParamValue::Json(Value::String(text)) => text.as_str(),
            ParamValue::Json(_) | ParamValue::Missing | ParamValue::Nothing | ParamValue::Unbound => {
                return Compared::Missing;
            }
        };
        if !is_relative(text) {
            return self.covers(text, reading).map_or(Compared::Missing, Compared::Is);
        }
        let joined = directory.map(|directory| format!("{directory}/{text}"));
        match (joined, climbs(text)) {
            (None, false) => Compared::Neither,
            (None, true) => Compared::Missing,
            (Some(path), false) => self.covers(&path, reading).map_or(Compared::Missing, Compared::Is),
            // It is within nothing, as without a directory; but a rule about the place that it leads to means it, too.
            (Some(path), true) if self.covers(&path, Reading::Loose) == Some(true) => Compared::Unreadable,
            (Some(_), true) => Compared::Missing,
        }
    }

    /// Paths do not become a path by being joined.
    fn joins(&self) -> bool {
        false
    }
}

/// The components of an absolute path, with `.` and `..` resolved. None where the text alone does not say which file
/// it is (relative, `~`, empty, a NUL), nor where it climbs over the root; read loosely, that ends at the root, as
/// for a kernel.
fn components(text: &str, reading: Reading) -> Option<Vec<&str>> {
    let below = text.strip_prefix('/').filter(|_| !text.contains('\0'))?;
    let mut components = Vec::new();
    for component in below.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                if components.pop().is_none() && reading == Reading::Strict {
                    return None;
                }
            }
            name => components.push(name),
        }
    }
    Some(components)
}

/// Whether the text is a path that begins in the directory it is taken from. Not so what a shell or a tool could expand
/// to something absolute: a home, a variable, braces, a drive, a URL.
fn is_relative(text: &str) -> bool {
    let first = text.split(['/', '\\']).next().unwrap_or_default();
    if first.is_empty() || first.starts_with(['~', '$', '%', '{', '"', '\'', '`']) || first.contains(':') {
        return false;
    }
    !text.contains(char::is_control) && !text.starts_with(char::is_whitespace)
}

/// Whether a relative path is ever above where it begins, with either kind of slash.
fn climbs(text: &str) -> bool {
    let mut depth = 0_usize;
    for component in text.split(['/', '\\']) {
        match component {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_a_mistake_with_its_remedy() {
        let said = |text: &str| {
            Within::new(&[Scalar::Text(text.to_owned())]).map(|_| ()).map_err(|wrong| {
                assert_eq!((wrong.len(), wrong[0].0), (1, 0));
                wrong[0].1.clone()
            })
        };
        for (text, remedy) in [
            ("/etc/**", "write \"/etc\""),
            ("/etc/*", "write \"/etc\""),
            ("/etc/**/*", "write \"/etc\""),
            ("/*", "write \"/\""),
            ("/home/*/.ssh", "write \"/home\", or a regular expression with `Matches`"),
            ("/var/log/app?.log", "write \"/var/log\", or a regular expression with `Matches`"),
        ] {
            let message = said(text).unwrap_err();
            assert!(message.starts_with("is no pattern; a directory covers"), "{text}: {message}");
            assert!(message.ends_with(remedy), "{message}");
        }
        for text in ["/etc", "/", "/app/[id]/{{name}}", "/a b/(c)"] {
            assert_eq!(said(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_path_is_resolved_by_its_text() {
        let whole = |text| components(text, Reading::Strict).map(|all| all.join("/"));
        for (text, expected) in [
            ("/workspace/a", Some("workspace/a")),
            ("/workspace/../etc", Some("etc")),
            ("//workspace/./a//", Some("workspace/a")),
            ("/", Some("")),
            ("/a/..", Some("")),
            ("/..", None),
            ("/a/../../etc", None),
            ("workspace", None),
            ("~/a", None),
            ("", None),
            ("/a\0b", None),
            ("/...", Some("...")),
        ] {
            assert_eq!(whole(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(components("/a/../../etc", Reading::Loose), Some(vec!["etc"]));
    }

    #[test]
    fn a_relative_path_that_does_not_climb_is_below_something() {
        for text in [
            "a",
            "src/main.rs",
            "./a",
            ".",
            "a/../b",
            "a//b/",
            "..a/b",
            "a b",
            ".git/hooks/x",
            "a\\b",
            "r/$id.ts",
        ] {
            assert!(is_relative(text) && !climbs(text), "{text}");
        }
        for text in [
            "",
            "/",
            "/a",
            "..",
            "../a",
            "a/../..",
            "a/../../b",
            "./../a",
            "~",
            "~/a",
            "~root/a",
            "$HOME/a",
            "${HOME}",
            "%USERPROFILE%/a",
            "C:/a",
            "C:a",
            "C:\\a",
            "\\a",
            "\\\\host\\a",
            "a\\..\\..\\b",
            "file:///a",
            " /a",
            "\"/a\"",
            "{/a,b}",
            "a{/../../etc,b}",
            "`pwd`",
            "a\0b",
            "a\n/b",
        ] {
            assert!(!is_relative(text) || climbs(text), "{text}");
        }
    }
}
