//! Compares the CAs that a webhook configuration names with those that are published. Pure.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, TestOperation};
use k8s_openapi::ByteString;
use serde_json::Value;

/// The patch that makes every webhook of a configuration trust these CAs; none if all do. Each webhook is given by its
/// name and its `caBundle`. The patch tests the names, so it fails if webhooks changed places meanwhile.
pub(super) fn patch<'a>(
    webhooks: impl Iterator<Item = (&'a str, Option<&'a ByteString>)>,
    cas: &[u8],
) -> Option<Patch> {
    // Both a Secret's data and this field are base64 in JSON.
    let wanted = serde_json::to_value(ByteString(cas.to_vec())).ok()?;
    let operations: Vec<PatchOperation> = webhooks
        .enumerate()
        .filter(|(_, (_, bundle))| bundle.is_none_or(|bundle| bundle.0 != cas))
        .flat_map(|(index, (name, _))| {
            let at = |fields: &[&str]| {
                let index = index.to_string();
                PointerBuf::from_tokens(["webhooks", &index].iter().chain(fields).copied())
            };
            let value = Value::from(name);
            [
                PatchOperation::Test(TestOperation { path: at(&["name"]), value }),
                PatchOperation::Add(AddOperation {
                    path: at(&["clientConfig", "caBundle"]),
                    value: wanted.clone(),
                }),
            ]
        })
        .collect();
    (!operations.is_empty()).then_some(Patch(operations))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_webhook_with_other_cas_gets_these_and_no_other_is_touched() {
        let (ours, old) = (ByteString(b"new".to_vec()), ByteString(b"old".to_vec()));
        let webhooks = [("a", Some(&old)), ("b", Some(&ours)), ("c", None)];
        let patch = patch(webhooks.into_iter(), b"new").unwrap();
        let mut configuration = json!({"webhooks": [
            {"name": "a", "clientConfig": {"caBundle": "b2xk", "url": "https://a"}},
            {"name": "b", "clientConfig": {"caBundle": "bmV3"}},
            {"name": "c", "clientConfig": {}},
        ]});
        json_patch::patch(&mut configuration, &patch).unwrap();
        for index in 0..3 {
            assert_eq!(configuration["webhooks"][index]["clientConfig"]["caBundle"], "bmV3");
        }
        assert_eq!(configuration["webhooks"][0]["clientConfig"]["url"], "https://a");
        assert_eq!(patch.len(), 4, "b is left alone");

        let mut reordered = json!({"webhooks": [{"name": "b", "clientConfig": {}}]});
        assert!(json_patch::patch(&mut reordered, &patch).is_err());
    }

    #[test]
    fn where_all_have_these_cas_nothing_is_patched() {
        let ours = ByteString(b"new".to_vec());
        assert!(patch([("a", Some(&ours))].into_iter(), b"new").is_none());
        assert!(patch(std::iter::empty(), b"new").is_none());
    }
}
