//! `postern demo`: what the gateway does, played in one process over real TLS, without a network.

mod agent;
mod outputs;
mod provider;
mod record;
mod stage;
mod steps;
mod turns;
mod upstream;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use tracing::Level;

use super::output;
use crate::cli::Output;
use crate::telemetry::log;
use stage::DemoStage;
use steps::{DemoStep, STEPS};

/// How a step went.
#[derive(Debug, Serialize)]
struct Played {
    step: usize,
    done: &'static str,
    expected: &'static str,
    seen: String,
    ok: bool,
}

/// Plays all steps; exit status 1 where what is seen differs from what is expected.
pub(super) fn run(output: Output) -> anyhow::Result<ExitCode> {
    // What the steps provoke is no news; what goes wrong is in what they see.
    log::start(Level::ERROR);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let played = runtime.block_on(play(output));
    runtime.shutdown_background();
    let played = played?;
    let fine = played.iter().filter(|step| step.ok).count();
    let text = format!("{fine}/{}\n", played.len());
    output::print(output, &text, &played)?;
    Ok(if fine == played.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn play(output: Output) -> anyhow::Result<Vec<Played>> {
    let stage = DemoStage::set().await?;
    let mut steps = Vec::new();
    for (index, step) in STEPS.iter().enumerate() {
        let played = play_one(index + 1, step, &stage).await;
        if output == Output::Text {
            io::stdout().write_all(played.text().as_bytes())?;
        }
        steps.push(played);
    }
    stage.clear().await;
    Ok(steps)
}

async fn play_one(number: usize, step: &DemoStep, stage: &DemoStage) -> Played {
    let seen = (step.play)(stage).await.unwrap_or_else(|error| format!("{error:#}"));
    let ok = seen == step.expected;
    Played { step: number, done: step.done, expected: step.expected, seen, ok }
}

impl Played {
    fn text(&self) -> String {
        let Self { step, done, expected, seen, ok } = self;
        let verdict = if *ok { "ok  " } else { "FAIL" };
        let mut line = format!("{verdict} {step:>2}  {done}; expected: {expected}; ");
        // Writing to a String cannot fail.
        let _ = writeln!(line, "seen: {seen}");
        line
    }
}
