//! Rows as columns of JSON, in which each text stands once.

use std::collections::HashMap;

use serde::Serialize;

use super::row::{Row, TEXTS};

/// Some rows. A text is its index in `texts`; the first is the empty one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Columns<'a> {
    texts: Vec<&'a str>,
    time: Vec<u64>,
    count: Vec<u64>,
    kind: Vec<usize>,
    verdict: Vec<usize>,
    status: Vec<u16>,
    bytes: Vec<u64>,
    input_tokens: Vec<u64>,
    cached_tokens: Vec<u64>,
    output_tokens: Vec<u64>,
    #[serde(flatten)]
    named: HashMap<&'static str, Vec<usize>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(rows: &[&'a Row]) -> Self {
        let mut texts = Texts { list: vec![""], indices: HashMap::from([("", 0)]) };
        let named = TEXTS.iter().enumerate().map(|(at, name)| {
            let column = rows.iter().map(|row| texts.index(&row.texts[at])).collect();
            (*name, column)
        });
        let named = named.collect();
        Self {
            time: rows.iter().map(|row| row.time).collect(),
            count: rows.iter().map(|row| row.count).collect(),
            kind: rows.iter().map(|row| texts.index(row.kind)).collect(),
            verdict: rows.iter().map(|row| texts.index(row.verdict)).collect(),
            status: rows.iter().map(|row| row.status).collect(),
            bytes: rows.iter().map(|row| row.bytes).collect(),
            input_tokens: rows.iter().map(|row| row.input_tokens).collect(),
            cached_tokens: rows.iter().map(|row| row.cached_tokens).collect(),
            output_tokens: rows.iter().map(|row| row.output_tokens).collect(),
            named,
            texts: texts.list,
        }
    }
}

struct Texts<'a> {
    list: Vec<&'a str>,
    indices: HashMap<&'a str, usize>,
}

impl<'a> Texts<'a> {
    fn index(&mut self, text: &'a str) -> usize {
        let next = self.list.len();
        let index = *self.indices.entry(text).or_insert(next);
        if index == next {
            self.list.push(text);
        }
        index
    }
}
