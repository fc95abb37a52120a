//! `postern-operator event-schema`: the JSON Schema of events, for docs/event.schema.json.

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;

use super::output;
use crate::cli::Output;
use crate::event::schema::json_schema;
use crate::operator::cli::EventSchemaArgs;

/// Prints the schema, which is JSON whatever format is asked for but YAML, or writes it to a file.
pub(super) fn run(args: &EventSchemaArgs, output: Output) -> anyhow::Result<ExitCode> {
    let schema = json_schema();
    let text = serde_json::to_string_pretty(&schema)? + "\n";
    match &args.file {
        Some(file) => {
            fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        None => output::print(output, &text, &schema)?,
    }
    Ok(ExitCode::SUCCESS)
}
