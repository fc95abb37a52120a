//! Opens an address in the user's browser.

use std::io::{self, Write};
use std::process::{Command, Stdio};

const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Starts the program that opens addresses. Where there is none, the printed address is left to be opened.
pub(super) fn open(url: &str) {
    let mut opener = Command::new(OPENER);
    opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = opener.spawn() {
        // Nobody may be reading it.
        let _ = writeln!(
            io::stderr(),
            "postern: {OPENER} cannot be started ({error}): open the address yourself"
        );
    }
}
