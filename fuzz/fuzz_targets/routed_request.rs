//! Requests of Messages for another model: any body is said as JSON with one reading or refused, and a marker is cut out of
//! the system prompt alone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::call::Vendor;
use postern::provider::translate::estimate::{Ratio, Size};
use postern::provider::translate::{
    ChatTerms, EffortTerms, Images, MessagesServer, MovedTerms, Transform, Transforms, ask, marked,
    moved_messages, prompt,
};
use postern::wire::json::{Document, Limits};
use serde_json::Value;

fuzz_target!(|input: (&[u8], u16, u8, bool)| {
    let (body, transforms, vendor, omits) = input;
    let Ok(document) = Document::parse(body, Limits::default()) else { return };
    let _ = Size::of(&document).tokens(Ratio::default());
    let is_chosen = |(number, _): &(usize, &Transform)| transforms >> number & 1 == 1;
    let chosen = Transform::ALL.iter().enumerate().filter(is_chosen);
    let terms = ChatTerms {
        model: "claude",
        label: "coder",
        vendor: Vendor::ALL[usize::from(vendor) % Vendor::ALL.len()],
        max_tokens: Some(1000),
        images: if omits { Images::Omit } else { Images::Send },
        effort: EffortTerms::Map,
        params: r#"{"seed":1}"#,
        transforms: chosen.map(|(_, transform)| *transform).collect::<Transforms>(),
    };
    if let Ok(request) = prompt(&document).and_then(|prompt| ask(&prompt, &terms)) {
        let sent = Document::parse(&request.body, Limits::default()).unwrap();
        assert!(sent.first_duplicate().is_none());
    }
    let moved = MovedTerms { model: Some("m"), max_tokens: Some(10), params: r#"{"seed":1}"# };
    for server in [MessagesServer::Anthropic, MessagesServer::Other] {
        if let Ok(moved) = moved_messages(&document, &moved, server) {
            Document::parse(&moved.body.unwrap_or_default(), Limits::default()).unwrap();
        }
    }
    if document.first_duplicate().is_none()
        && let Some(marked) = marked(&document, |_| true).unwrap()
    {
        let without = |json: &[u8]| {
            let mut value: Value = serde_json::from_slice(json).unwrap();
            value.as_object_mut().unwrap().remove("system");
            value
        };
        assert_eq!(without(body), without(&marked.body));
    }
});
