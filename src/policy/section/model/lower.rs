//! Models, judged and compiled.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::lowering::at_most;
use super::super::model_provider::LoweredProvider;
use super::super::{Lowering, Problems};
use super::written::{Effort, Images, WrittenModel};
use super::{params, transforms};
use crate::call::Dialect;
use crate::policy::routing::{Model, ORIGIN};
use crate::yaml::field;

/// The most models of a policy (routing.md 12.11).
pub(super) const MOST_MODELS: usize = 64;

/// The longest name that a provider is asked for, in bytes.
const MOST_NAME: usize = 256;

/// Compiles the models of a policy, each with its field; those with mistakes are left out.
pub(super) fn lower<'a>(
    written: &'a [WrittenModel],
    lowering: &mut Lowering<'a>,
) -> Vec<(String, Arc<Model>)> {
    let list = "spec.models";
    at_most(list, written.len(), MOST_MODELS, "models", &mut lowering.problems);
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let mut lowered = Vec::with_capacity(written.len().min(MOST_MODELS));
    for (number, written) in written.iter().enumerate().take(MOST_MODELS) {
        let path = field::item(list, number);
        let first = *labels.entry(&written.name).or_insert(number);
        let name = label(&written.name).and_then(|()| match first {
            first if first == number => Ok(()),
            first => Err(format!("the label `{}` is taken by {}", written.name, field::item(list, first))),
        });
        lowering.problems.keep(&field::key(&path, "name"), name);
        let one = model(&path, written, lowering).map(Arc::new);
        lowering.models.add(&written.name, one.as_ref());
        lowered.extend(one.map(|one| (path, one)));
    }
    lowered
}

/// Judges a label, which agents write in markers and read in headers.
fn label(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("is required".to_owned());
    }
    if text == ORIGIN {
        return Err("`origin` is where the agent sent the request; choose another label".to_owned());
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.len() > 63 || !text.bytes().all(is_plain) {
        return Err("a label is 1 to 63 letters, digits, `.`, `_` and `-`".to_owned());
    }
    Ok(())
}

fn model(path: &str, written: &WrittenModel, lowering: &mut Lowering<'_>) -> Option<Model> {
    let provider = provider(path, &written.provider, lowering);
    let problems = &mut lowering.problems;
    let model = name(path, written.model.as_deref(), problems);
    let max_tokens = max_tokens(path, written.max_tokens, problems);
    let is_chat = provider.as_ref().map(|one| one.provider.dialect == Dialect::OpenAIChat);
    let transforms = transforms::lower(path, written.transforms.as_deref(), is_chat, problems);
    let params = params::lower(path, written.params.as_ref(), problems);
    let provider = provider?;
    let defaults = &provider.defaults;
    Some(Model {
        id: lowering.owner.rule(&format!("models/{}", written.name)),
        label: written.name.as_str().into(),
        provider: Arc::clone(&provider.provider),
        model: model?,
        max_tokens: max_tokens?,
        images: written.images.unwrap_or(Images::Send),
        effort: written.effort.unwrap_or(Effort::Drop),
        params: if written.params.is_some() { params? } else { defaults.params.clone() },
        transforms: if written.transforms.is_some() { transforms? } else { defaults.transforms.clone() },
    })
}

/// Finds the provider among the policy's own.
fn provider(path: &str, name: &str, lowering: &mut Lowering<'_>) -> Option<Arc<LoweredProvider>> {
    if let Some(found) = lowering.model_providers.find(name).filter(|_| !name.is_empty()) {
        return found.cloned();
    }
    let message = if name.is_empty() {
        "is required: one of this policy's `modelProviders`".to_owned()
    } else {
        lowering.model_providers.unknown(name, "modelProviders")
    };
    lowering.problems.add(field::key(path, "provider"), message);
    None
}

fn name(path: &str, written: Option<&str>, problems: &mut Problems) -> Option<Option<Arc<str>>> {
    let Some(name) = written else { return Some(None) };
    let is_fine =
        (1..=MOST_NAME).contains(&name.len()) && name.trim() == name && !name.chars().any(char::is_control);
    if !is_fine {
        let message = format!(
            "expected 1 to {MOST_NAME} visible characters, or leave the field out for the one that was asked"
        );
        problems.add(field::key(path, "model"), message);
        return None;
    }
    Some(Some(name.into()))
}

fn max_tokens(path: &str, written: Option<i64>, problems: &mut Problems) -> Option<Option<u64>> {
    let Some(written) = written else { return Some(None) };
    let most = u64::try_from(written).ok().filter(|most| *most > 0);
    problems.keep(&field::key(path, "maxTokens"), most.ok_or("expected a number of at least 1")).map(Some)
}
