//! The companion of a run that reads the command's files: started before the gateway, stopped after the command.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::command::private_directory::PrivateDirectory;
use crate::command::workspace::READY;

/// How long it may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A companion that answers.
pub(super) struct Companion {
    child: Child,
    pub(super) socket: PathBuf,
}

impl Companion {
    /// Starts one where a workspace is named.
    pub(super) async fn of(root: Option<&Path>, place: &PrivateDirectory) -> anyhow::Result<Option<Self>> {
        match root {
            Some(root) => Self::start(root, place).await.map(Some),
            None => Ok(None),
        }
    }

    /// Starts `postern workspace` for a directory, and waits until it answers in `place`. It gets nothing of the environment,
    /// and no signal from the terminal; it ends with its standard input, so that it does not outlive this process.
    async fn start(root: &Path, place: &PrivateDirectory) -> anyhow::Result<Self> {
        let socket = place.path().join("workspace.sock");
        let program = std::env::current_exe().context("this executable cannot be found")?;
        let mut child = Command::new(program)
            .arg("workspace")
            .arg("--root")
            .arg(root)
            .arg("--socket")
            .arg(&socket)
            .arg("--attached")
            .env_clear()
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the companion of the workspace cannot be started")?;
        let output = child.stdout.take().context("the companion has no standard output")?;
        let mut line = String::new();
        let mut output = BufReader::new(output);
        let said = tokio::time::timeout(PATIENCE, output.read_line(&mut line)).await;
        if !matches!(said, Ok(Ok(_))) || line.trim_end() != READY {
            bail!("--workspace {}: it cannot be read", root.display());
        }
        Ok(Self { child, socket })
    }

    /// Ends it.
    pub(super) async fn stop(mut self) {
        drop(self.child.stdin.take());
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            tracing::warn!("the companion of the workspace did not end, and is killed");
        }
    }
}
