//! A gateway for tests that reads requests to models.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CleanTexts, Inspection};
use crate::call::{Api, BlockedCalls, Denial, Dialect, Service, Vendor};
use crate::dlp::{Detectors, Search};
use crate::name::host::Host;
use crate::policy::{Policy, document};
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::{self, Detection, Looked, RequestItem, RequestText};
use crate::wire::json::Limits;

/// Texts that are clean alone; some are two parts of a token.
pub(super) const TEXTS: [&str; 7] =
    ["go", "a\n\"b\"\\", "see glpat-Zx3", "Zx3kQ9vB7mW2", "kQ9vB7mW2tR5yU8pL there", "tR5yU8pL1", "ä€ text"];

/// A gateway with all detectors.
pub(super) struct Gateway {
    policy: Arc<Policy>,
    pub(super) search: Search,
    host: Host,
    pub(super) is_vouched: bool,
    pub(super) dialect: Dialect,
}

impl Gateway {
    pub(super) fn new() -> Self {
        Self::under("{}")
    }

    pub(super) fn under(spec: &str) -> Self {
        let text = format!(
            "{{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {{name: p, namespace: n}}, spec: {spec}}}"
        );
        let documents = document::parse("p.yaml", &text).unwrap();
        let policy = Arc::new(Policy::compile(&documents, &BTreeMap::new()).unwrap());
        let search = Arc::clone(policy.detectors().unwrap_or(Detectors::shared())).into();
        let host = Host::parse("api.anthropic.com").unwrap();
        Self { policy, search, host, is_vouched: true, dialect: Dialect::Anthropic }
    }

    pub(super) fn speaking(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// What was found in a request, and what became of it.
    pub(super) fn read(&self, body: &str, clean: Option<&Arc<CleanTexts>>) -> (Vec<String>, String) {
        let inspection = Inspection::of(&self.policy, self.search.clone(), &self.host, (body.len(), 1 << 20))
            .of_model(self.is_vouched);
        let mut inspection = match clean {
            Some(clean) => inspection.passing_over(Arc::clone(clean)),
            None => inspection,
        };
        let became = self.read_by(body, &mut inspection);
        let found = inspection.take().findings;
        (found.into_iter().map(|found| format!("{} {}", found.location, found.detector)).collect(), became)
    }

    /// How many items of a request are passed over.
    pub(super) fn passed_over(&self, body: &str, clean: &Arc<CleanTexts>) -> usize {
        let inspection = Inspection::of(&self.policy, self.search.clone(), &self.host, (body.len(), 1 << 20));
        let mut counted = Counted { inspection: inspection.passing_over(Arc::clone(clean)), passed_over: 0 };
        self.read_by(body, &mut counted);
        counted.passed_over
    }

    /// What becomes of a request.
    fn read_by(&self, body: &str, detection: &mut dyn Detection) -> String {
        let (vendor, api, path) = match self.dialect {
            Dialect::Anthropic => (Vendor::Anthropic, Api::Messages, "/v1/messages"),
            Dialect::OpenAIChat => (Vendor::OpenAi, Api::ChatCompletions, "/v1/chat/completions"),
            Dialect::OpenAIResponses => (Vendor::OpenAi, Api::Responses, "/v1/responses"),
            Dialect::Gemini => {
                (Vendor::Gemini, Api::GenerateContent, "/v1beta/models/gemini-2.5-pro:generateContent")
            }
            Dialect::Bedrock => (Vendor::Bedrock, Api::Converse, "/model/amazon.nova-pro/converse"),
        };
        let service = Service { vendor, api, dialect: Some(self.dialect) };
        let head = ModelRequestHead { service, path, query: None, is_subscription: false };
        let read = request::read(
            crate::provider::adapter(self.dialect),
            &head,
            (body.as_bytes(), Limits::default()),
            (&*self.policy, &BlockedCalls::new(1)),
            Some(detection),
        );
        match read {
            Ok(edited) => String::from_utf8(edited.body.unwrap_or_else(|| body.as_bytes().to_vec())).unwrap(),
            Err(denial) => denial.decision.why().to_owned(),
        }
    }
}

/// Counts items that are passed over.
struct Counted {
    inspection: Inspection,
    passed_over: usize,
}

impl Detection for Counted {
    fn look(&mut self, text: &RequestText<'_, '_>) -> Result<Looked, Denial> {
        self.inspection.look(text)
    }

    fn enter(&mut self, item: &RequestItem<'_, '_>) -> bool {
        let is_passed_over = self.inspection.enter(item);
        self.passed_over += usize::from(is_passed_over);
        is_passed_over
    }

    fn leave(&mut self) {
        self.inspection.leave();
    }

    fn pass(&mut self, text: &RequestText<'_, '_>) {
        self.inspection.pass(text);
    }

    fn conclude(&mut self, is_attested: bool) -> Result<Vec<String>, Denial> {
        self.inspection.conclude(is_attested)
    }

    fn holds_placeholders(&self) -> bool {
        self.inspection.holds_placeholders()
    }
}
