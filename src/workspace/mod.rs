//! The workspace: a companion process reads the agent's files, since the gateway, which has the keys, must not.
//!
//! [`serve`] answers on a Unix socket what [`client`] asks for the gateway; [`protocol`] is what they say. `root` opens
//! files, `survey` walks over them. What is found in a text is pure: `outline`, `occurrences`, `page`.

mod answer;
pub mod client;
pub(crate) mod occurrences;
pub mod outline;
mod page;
pub mod protocol;
mod root;
pub mod serve;
mod survey;

use std::time::Duration;

/// How long the gateway waits for one answer.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// How long the companion works on one answer, so that it arrives in time.
const EFFORT: Duration = Duration::from_millis(35);

/// The longest file that is read, in bytes.
const MOST_FILE: u64 = 1 << 20;

/// The most files and directories that are looked at for one answer.
const MOST_ENTRIES: usize = 50_000;
