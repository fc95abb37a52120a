//! `postern ledger query --sql`: one question in SQL, over a ledger or over lines that were put into its tables.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Number, Value};

use super::print;
use super::reader;
use crate::cli::{LedgerQueryArgs, Output};
use crate::command::{ledger, output};
use crate::ledger::store::{self, SqlFiller, SqlSource, SqlValue};
use crate::terminal;

/// Prints the rows as they are found.
pub(super) fn run(sql: &str, args: &LedgerQueryArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut source = source(args.source.ledger.as_deref())?;
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut is_first = true;
    let asked = source.ask(sql, args.limit, |columns, values| {
        let row = row(columns, values, std::mem::take(&mut is_first), output)?;
        Ok::<_, anyhow::Error>(stdout.write_all(row.as_bytes())?)
    });
    // What was found before a bound was reached is right.
    stdout.flush()?;
    if asked? {
        // Nobody may be reading it.
        let _ = writeln!(
            io::stderr(),
            "postern: there are more; --limit says how many are printed, at most 10000"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the ledger, or puts the lines into a file of the same tables.
fn source(ledger: Option<&Path>) -> anyhow::Result<SqlSource> {
    if let [file] = reader::named(ledger)?.as_slice()
        && file.is_file()
        && store::is_store(file)?
    {
        return Ok(SqlSource::open(file)?);
    }
    let mut filler = SqlFiller::create()?;
    let mut failure = None;
    let skipped = ledger::each(ledger, |event, line| {
        if failure.is_none() {
            failure = filler.add(event, line).err();
        }
    })?;
    print::report_skipped(&skipped);
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(filler.finish()?),
    }
}

/// A row on a line, fields apart by tabs and behind the names of the columns; an object for programs.
fn row(columns: &[String], values: Vec<SqlValue>, is_first: bool, form: Output) -> anyhow::Result<String> {
    if form == Output::Text {
        let names = if is_first { line(columns.iter().map(String::as_str)) } else { String::new() };
        let texts: Vec<String> = values.into_iter().map(text).collect();
        return Ok(names + &line(texts.iter().map(String::as_str)));
    }
    let mut object = Map::new();
    for (name, value) in columns.iter().zip(values) {
        // Two columns may have one name.
        let name =
            if object.contains_key(name) { format!("{name}:{}", object.len() + 1) } else { name.clone() };
        object.insert(name, json(value));
    }
    let object = Value::Object(object);
    Ok(match form {
        Output::Yaml | Output::Test => format!("---\n{}", output::yaml(&object)?),
        Output::Text | Output::Json => format!("{}\n", terminal::json(&object.to_string())),
    })
}

fn line<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let fields: Vec<String> = fields.map(|field| terminal::plain(field).into_owned()).collect();
    fields.join("\t") + "\n"
}

fn text(value: SqlValue) -> String {
    match value {
        SqlValue::Null => "-".to_owned(),
        SqlValue::Integer(value) => value.to_string(),
        SqlValue::Real(value) => value.to_string(),
        SqlValue::Text(text) => text,
    }
}

fn json(value: SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(value) => value.into(),
        SqlValue::Real(value) => Number::from_f64(value).map_or(Value::Null, Value::Number),
        SqlValue::Text(text) => text.into(),
    }
}
