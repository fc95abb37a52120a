//! Where runs keep the tool results that are cut out of requests: one directory for all runs, since a conversation that is
//! resumed names the same texts. The agent reads the files themselves.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::config::evidence::refuse_path;

/// The directory below the user's state directory.
const DIRECTORY: &str = "evidence";

/// Makes the directory, for its owner alone, and returns the gateway's settings for it. Where its path could not be read out of
/// a text by everybody, texts are named by the gateway's own address.
pub(super) fn settings(state: &Path) -> anyhow::Result<Value> {
    let directory = state.join(DIRECTORY);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let mut settings = json!({"directory": directory});
    if let Some(path) = directory.to_str().filter(|path| refuse_path(path).is_none()) {
        settings["agentPath"] = Value::from(path);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_agent_reads_the_directory_that_the_gateway_writes() {
        let state = tempfile::tempdir().unwrap();
        let made = settings(&state.path().join("postern")).unwrap();
        assert_eq!(made["directory"], made["agentPath"]);
        let directory = Path::new(made["directory"].as_str().unwrap());
        assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let made = settings(&state.path().join("a name")).unwrap();
        assert!(made["directory"].is_string() && made["agentPath"].is_null());
    }
}
