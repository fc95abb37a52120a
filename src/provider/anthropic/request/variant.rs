//! The variant of Anthropic Messages that a request is for, by its path and login.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::call::Denial;
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// The variant of Messages that a request is for: who serves it, and by which login.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::provider) struct MessagesVariant<'a> {
    /// The model that the path names, for bodies that name none.
    pub model: Option<&'a str>,
    /// Whether the path asks for a stream; else the body does.
    pub stream: bool,
    /// Whether the login is that of a subscription.
    pub subscription: bool,
}

impl<'a> MessagesVariant<'a> {
    /// Returns the variant that the path and the headers name.
    pub(in crate::provider) fn of(head: &ModelRequestHead<'a>) -> Self {
        // `…/models/MODEL:rawPredict` and `:streamRawPredict`, at Google.
        let last = head.path.rsplit('/').next().unwrap_or_default();
        let named = last.strip_suffix(":rawPredict").or_else(|| last.strip_suffix(":streamRawPredict"));
        Self {
            model: named.filter(|name| *name != "count-tokens"),
            stream: last.ends_with(":streamRawPredict"),
            subscription: head.is_subscription,
        }
    }

    /// Whether the body may be sent otherwise than as its client made it, once that is what it comes to.
    ///
    /// Claude Code puts a hash of the body into its system prompt, and with the login of a subscription a body that does
    /// not fit its hash is taken for that of another application. A body without the hash may be edited.
    ///
    /// # Errors
    /// For a subscription's body that has the hash and was edited.
    pub(super) fn permits_edits<'d>(
        &self,
        editor: &RequestEditor<'d>,
        body: Value<'d>,
    ) -> Result<(), Denial> {
        if !self.subscription || !editor.is_edited() || !is_attested(editor, body)? {
            return Ok(());
        }
        Err(Denial::builtin(
            "subscription-edit",
            "This request offers what policy takes out of it, and the body of a request with the login of a Claude \
             subscription must stay as it is. Set CLAUDE_CODE_ATTRIBUTION_HEADER=0 for the agent, let it use an API \
             key, or allow what it offers (hostedTools.allow)",
        ))
    }
}

impl MessagesVariant<'_> {
    /// Whether the body has the hash, and the login is one with which it must fit. A system prompt that cannot be read
    /// is refused elsewhere.
    pub(in crate::provider) fn is_attested(&self, editor: &RequestEditor<'_>) -> bool {
        self.subscription && is_attested(editor, editor.root()).unwrap_or(true)
    }
}

/// Whether the login is that of a Claude subscription, as the agent sent it, before a credential is attached.
pub(in crate::provider) fn is_subscription(headers: &HeaderMap) -> bool {
    let says = |value: &http::HeaderValue, test: fn(&str) -> bool| value.to_str().is_ok_and(test);
    let token = |value: &str| {
        value.split_once(' ').is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && token.trim().starts_with("sk-ant-oat")
        })
    };
    let beta = |value: &str| value.split(',').any(|beta| beta.trim() == "oauth-2025-04-20");
    headers.get_all(AUTHORIZATION).iter().any(|value| says(value, token))
        || headers.get_all("anthropic-beta").iter().any(|value| says(value, beta))
}

/// Whether the system prompt has the line in which Claude Code keeps the hash.
fn is_attested<'d>(editor: &RequestEditor<'d>, body: Value<'d>) -> Result<bool, Denial> {
    let Some(system) = editor.get(body, "system")? else { return Ok(false) };
    let is_hash =
        |value: Value<'_>| value.text().is_some_and(|text| text.contains("x-anthropic-billing-header"));
    for block in system.items().into_iter().flatten() {
        if editor.get(block, "text")?.is_some_and(is_hash) {
            return Ok(true);
        }
    }
    Ok(is_hash(system))
}
