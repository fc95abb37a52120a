//! The texts of an event that somebody outside has chosen: an agent, a model, a provider.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Destination, Event, Finding, Http, Provider, ToolCall};

/// What is shown in the place of a text; none where it is shown as it is.
type Shown<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

impl Event {
    /// Shows each of these texts otherwise where `shown` returns another.
    pub fn show_chosen(&mut self, shown: &mut dyn FnMut(&str) -> Option<String>) {
        shared(&mut self.session, shown);
        if let Some(destination) = &mut self.destination {
            show_destination(destination, shown);
        }
        if let Some(Http { method, path, .. }) = &mut self.http {
            cow(Some(method), shown);
            text(path, shown);
        }
        if let Some(provider) = &mut self.provider {
            show_provider(provider, shown);
        }
        if let Some(call) = &mut self.tool_call {
            show_call(call, shown);
        }
        cow(self.decision.reason.as_mut(), shown);
        self.transforms
            .iter_mut()
            .filter_map(|transform| transform.detail.as_mut())
            .for_each(|detail| text(detail, shown));
        for Finding { tool, location, .. } in &mut self.dlp {
            tool.iter_mut().chain([location]).for_each(|one| text(one, shown));
        }
    }
}

/// A destination is shared by the events of a connection: it is copied where something of it is shown otherwise.
fn show_destination(destination: &mut Arc<Destination>, shown: Shown<'_>) {
    let host = shown(&destination.host);
    let reason = destination.reason.as_deref().and_then(&mut *shown);
    if host.is_some() || reason.is_some() {
        let mut own = Destination::clone(destination);
        own.host = host.unwrap_or(own.host);
        own.reason = reason.map(Cow::Owned).or(own.reason);
        *destination = Arc::new(own);
    }
}

fn show_provider(provider: &mut Provider, shown: Shown<'_>) {
    shared(&mut provider.model, shown);
    shared(&mut provider.organization, shown);
    let texts =
        provider.models.iter_mut().chain(&mut provider.response_model).chain(&mut provider.request_id);
    texts.for_each(|one| text(one, shown));
    provider.tools.iter_mut().for_each(|tool| text(&mut tool.name, shown));
    if let Some(route) = &mut provider.route
        && let Some(model) = shown(&route.model)
    {
        Arc::make_mut(route).model = model.into();
    }
}

fn show_call(call: &mut ToolCall, shown: Shown<'_>) {
    let ToolCall { id, name, namespace, input, command, .. } = call;
    let texts = [id, name].into_iter().chain(namespace).chain(input).chain(command);
    texts.for_each(|one| text(one, shown));
}

fn text(text: &mut String, shown: Shown<'_>) {
    if let Some(other) = shown(text) {
        *text = other;
    }
}

fn cow(text: Option<&mut Cow<'static, str>>, shown: Shown<'_>) {
    if let Some(text) = text
        && let Cow::Owned(own) = text
        && let Some(other) = shown(own)
    {
        *text = Cow::Owned(other);
    }
}

fn shared(text: &mut Option<Arc<str>>, shown: Shown<'_>) {
    if let Some(other) = text.as_deref().and_then(shown) {
        *text = Some(other.into());
    }
}
