//! The files of the page, which are part of the executable.

/// A file: its path below the token, its content type and its bytes.
pub(super) struct PageFile {
    path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal, $name:literal, $content_type:expr;)*) => {
        &[$(PageFile { path: $path, content_type: $content_type, bytes: include_bytes!(concat!("assets/", $name)) }),*]
    };
}

const FILES: &[PageFile] = files! {
    "", "index.html", HTML;
    "style.css", "style.css", CSS;
    "icon.svg", "icon.svg", "image/svg+xml";
    "app.js", "app.js", SCRIPT;
    "charts.js", "charts.js", SCRIPT;
    "detail.js", "detail.js", SCRIPT;
    "dom.js", "dom.js", SCRIPT;
    "events.js", "events.js", SCRIPT;
    "list.js", "list.js", SCRIPT;
    "panels.js", "panels.js", SCRIPT;
    "rows.js", "rows.js", SCRIPT;
    "sessions.js", "sessions.js", SCRIPT;
    "state.js", "state.js", SCRIPT;
    "summary.js", "summary.js", SCRIPT;
    "text.js", "text.js", SCRIPT;
    "uplot.js", "vendor/uplot-1.6.32.min.js", SCRIPT;
    "uplot.css", "vendor/uplot-1.6.32.min.css", CSS;
};

/// Finds a file by its path below the token.
pub(super) fn find(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(bytes < 300 << 10, "{bytes}");
    }

    #[test]
    fn the_page_names_no_other_place_and_needs_no_inline_script() {
        for file in FILES.iter().filter(|file| !file.path.starts_with("uplot")) {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for word in [
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "<style",
                " style=",
                " onclick=",
            ] {
                assert!(!text.contains(word), "{} has {word}", file.path);
            }
            assert_eq!(
                text.matches("<script").count(),
                text.matches("<script src=").count() + text.matches("<script type=\"module\" src=").count(),
                "{}",
                file.path
            );
        }
    }
}
