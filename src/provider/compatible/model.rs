//! The models that a request could use: which search by themselves, and which name more than a model.

use super::extensions::{
    PLUGIN_SUFFIXES, SEARCH_DISABLED, SEARCH_MODEL, SEARCH_MODELS, VendorScope, WEB_PLUGIN,
};
use crate::call::{Denial, Vendor};
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// How many models one request may name.
pub(super) const MOST: usize = 256;

/// Reads `model` and `models`, and says them as facts after those that are known from elsewhere (a deployment in the
/// path). Asks about models that search and about presets, and takes off endings that stand for a plugin.
///
/// # Errors
/// If policy does not allow one of the models, or a name cannot be understood.
pub(in crate::provider) fn models(editor: &mut RequestEditor<'_>, vendor: Vendor) -> Result<(), Denial> {
    let root = editor.root();
    let model = editor.get(root, "model")?.filter(|value| !value.is_null());
    let several = editor.get(root, "models")?.filter(|value| !value.is_null());
    let several = match several {
        None => Vec::new(),
        Some(list) => {
            list.items().ok_or_else(|| Denial::unparseable("models", "it is not a list"))?.collect()
        }
    };
    for value in model.into_iter().chain(several) {
        if editor.facts.models.len() >= MOST {
            return Err(Denial::builtin("bound", format!("the request names more than {MOST} models")));
        }
        read(editor, vendor, value)?;
    }
    editor.facts.model = editor.facts.models.first().cloned();
    Ok(())
}

fn read<'d>(editor: &mut RequestEditor<'d>, vendor: Vendor, value: Value<'d>) -> Result<(), Denial> {
    let name = value.text().ok_or_else(|| Denial::unparseable("model", "it is not a string"))?;
    let folded = name.to_ascii_lowercase();
    if has_preset(vendor, &folded) {
        editor.refuses("preset")?;
    }
    if searches(editor, vendor, &folded)? {
        editor.refuses(SEARCH_MODEL)?;
    }
    let mut asked = name.clone();
    if let Some(plain) = without_plugin(vendor, &name)
        && editor.strips(WEB_PLUGIN)?
    {
        editor.replace(value, serde_json::Value::from(plain.as_str()).to_string())?;
        asked = plain.into();
    }
    if !editor.facts.models.iter().any(|known| *known == asked) {
        editor.facts.models.push(asked.into_owned());
    }
    Ok(())
}

/// `@preset/slug`, alone or after a model: configuration that is kept at the provider. `name` is in lower case.
fn has_preset(vendor: Vendor, name: &str) -> bool {
    VendorScope::Only(&[Vendor::OpenRouter]).covers(vendor) && name.contains("@preset/")
}

/// Whether a model searches by itself, which the request does not turn off. `name` is in lower case.
fn searches(editor: &RequestEditor<'_>, vendor: Vendor, name: &str) -> Result<bool, Denial> {
    let base = name.split(':').next().unwrap_or(name);
    let short = base.rsplit('/').next().unwrap_or(base);
    let mut of_vendor = SEARCH_MODELS.iter().filter(|(_, at)| at.covers(vendor));
    let is_search = of_vendor.any(|(pattern, _)| fits(pattern, base) || fits(pattern, short));
    let (key, at) = &SEARCH_DISABLED;
    // Of a host that nobody knows it is not known that the parameter does anything.
    if !is_search || vendor == Vendor::Custom || !at.covers(vendor) {
        return Ok(is_search);
    }
    let disabled = editor.get(editor.root(), key)?.and_then(Value::as_bool);
    Ok(disabled != Some(true))
}

/// The name without endings that stand for a plugin; none where it has none.
fn without_plugin(vendor: Vendor, name: &str) -> Option<String> {
    if !name.contains(':') {
        return None;
    }
    let is_plugin = |ending: &str| {
        let mut suffixes = PLUGIN_SUFFIXES.iter().filter(|(_, at)| at.covers(vendor));
        suffixes.any(|(suffix, _)| ending.trim().eq_ignore_ascii_case(suffix))
    };
    let mut parts = name.split(':');
    let base = parts.next().unwrap_or(name);
    let kept: Vec<&str> = std::iter::once(base).chain(parts.filter(|part| !is_plugin(part))).collect();
    let plain = kept.join(":");
    (plain != name).then_some(plain)
}

/// Whether a pattern, in which `*` is any run of characters, covers all of a name.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(beginning) else { return false };
    let mut rest = rest;
    while let Some((middle, next)) = rest.split_once('*') {
        let Some((_, after)) = left.split_once(middle) else { return false };
        (left, rest) = (after, next);
    }
    left.ends_with(rest)
}
