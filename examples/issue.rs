//! Issues the CA of a namespace for a file of policies, below a root of its own, and prints both Secrets as JSON.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};
use std::time::SystemTime;

use postern::operator::authority::{CaConstraints, RootCa};
use postern::policy::document;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: issue POLICIES.yaml")?;
    let documents = document::parse(&file, &std::fs::read_to_string(&file)?)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let now = SystemTime::now();
    let constraints = CaConstraints::of(&documents);
    let root = RootCa::generate(now)?;
    let issued = RootCa::load(&root, now)?.issue("example", &constraints, None, now)?;
    let mut printed = BTreeMap::new();
    for (key, value) in issued.into_iter().chain(root) {
        printed.insert(key, String::from_utf8(value)?);
    }
    printed.insert("caveats".to_owned(), constraints.caveats().join("\n"));
    writeln!(io::stdout(), "{}", serde_json::to_string(&printed)?)?;
    Ok(())
}
