//! Tests of the search of requests to models: what is replaced, denied or recorded, by whose text it is.

use super::*;
use crate::call::{Api, BlockedCalls, Dialect, Service, Vendor};
use crate::policy::document::parse;
use crate::policy::{Labels, Policy, Selected};
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::{Detection, EditedRequest, read};
use crate::wire::json::Limits;

/// Put together here, so that no file holds one.
fn token() -> String {
    format!("glpat-{}", "Ab3dEf6hIj9kLm2nOp5q")
}

fn policy(spec: &str) -> Arc<Policy> {
    let text = format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p, namespace: agents}}\nspec:\n  {spec}\n"
    );
    let documents = parse("p.yaml", &text).unwrap_or_else(|problems| panic!("{problems:?}"));
    Arc::new(Policy::compile(documents, &Selected::default(), &Labels::default()).unwrap())
}
