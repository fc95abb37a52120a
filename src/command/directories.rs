//! The user's directories (XDG Base Directory Specification).

use std::path::PathBuf;

use anyhow::Context;

/// Where the CA of `postern run` is: `$XDG_DATA_HOME/postern`.
pub fn data() -> anyhow::Result<PathBuf> {
    find("XDG_DATA_HOME", ".local/share")
}

/// Where the user's policy is: `$XDG_CONFIG_HOME/postern`.
pub fn config() -> anyhow::Result<PathBuf> {
    find("XDG_CONFIG_HOME", ".config")
}

/// Where events of `postern run` go: `$XDG_STATE_HOME/postern`.
pub fn state() -> anyhow::Result<PathBuf> {
    find("XDG_STATE_HOME", ".local/state")
}

/// A relative path in such a variable is invalid and ignored, as the specification says.
fn find(variable: &str, below_home: &str) -> anyhow::Result<PathBuf> {
    let absolute = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = match absolute(variable) {
        Some(base) => base,
        None => absolute("HOME")
            .with_context(|| format!("neither {variable} nor HOME is an absolute path in the environment"))?
            .join(below_home),
    };
    Ok(base.join("postern"))
}
