//! Packs documents into the ConfigMap: one per key, or all of them compressed where they would not fit. Pure.

use std::collections::BTreeMap;

use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{EncodeV2, GzipEncoder};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;

use super::candidate::key;
use crate::pod;
use crate::policy::document::{self, Document, Kind, Metadata};
use crate::wire::coding::{Decoder, Limits, Wrote};

/// The most bytes of values that the API server accepts in one ConfigMap.
const BOUND: usize = 1 << 20;
/// Above this many bytes or documents they are compressed: a gateway reads at most 4,096 files.
const PLAIN: usize = 900 << 10;
const PLAIN_FILES: usize = 4_000;
/// The separator of documents in one file.
const SEPARATOR: &str = "\n---\n";
/// The most bytes of policies that a gateway reads.
const DECODED: usize = 16 << 20;

/// Documents as they are put into a ConfigMap.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PackedDocuments {
    pub(super) data: BTreeMap<String, String>,
    pub(super) binary_data: BTreeMap<String, ByteString>,
}

/// Documents that fit in no ConfigMap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the namespace's policies are {bytes} bytes, {compressed} of them compressed, and a ConfigMap holds 1 MiB: shorten or split what they list"
)]
pub(super) struct TooLarge {
    pub(super) bytes: usize,
    pub(super) compressed: usize,
}

/// Packs documents beside `others` bytes of other values.
pub(super) fn pack(
    documents: &BTreeMap<String, Document>,
    others: usize,
) -> Result<PackedDocuments, TooLarge> {
    let texts = texts(documents);
    let bytes = texts.iter().map(|(key, text)| key.len() + text.len()).sum::<usize>();
    if bytes + others <= PLAIN && texts.len() <= PLAIN_FILES {
        return Ok(PackedDocuments { data: texts, binary_data: BTreeMap::new() });
    }
    let compressed = joined(texts);
    if compressed.len() + others > BOUND || bytes > DECODED {
        return Err(TooLarge { bytes, compressed: compressed.len() });
    }
    let binary_data = BTreeMap::from([(pod::COMPRESSED_KEY.to_owned(), ByteString(compressed))]);
    Ok(PackedDocuments { data: BTreeMap::new(), binary_data })
}

/// Packs documents in two forms: as they are, and as gateways of the last release can read them.
pub(super) fn pack_both(
    newest: &BTreeMap<String, Document>,
    older: &BTreeMap<String, Document>,
    others: usize,
) -> Result<PackedDocuments, TooLarge> {
    let newest = joined(texts(newest));
    let mut packed = pack(older, others + newest.len())?;
    packed.binary_data.insert(pod::NEWEST_KEY.to_owned(), ByteString(newest));
    Ok(packed)
}

fn texts(documents: &BTreeMap<String, Document>) -> BTreeMap<String, String> {
    documents
        .iter()
        .map(|(key, document)| (key.clone(), serde_json::to_string(document).unwrap_or_default()))
        .collect()
}

/// The texts as one file of YAML documents, compressed.
fn joined(texts: BTreeMap<String, String>) -> Vec<u8> {
    gzip(texts.into_values().collect::<Vec<_>>().join(SEPARATOR).as_bytes())
}

/// The documents of a ConfigMap by their keys, in their newest form. Skips those that this version cannot read.
pub(super) fn unpack(map: &ConfigMap) -> BTreeMap<String, Document> {
    match map.binary_data.as_ref().and_then(|binary| binary.get(pod::NEWEST_KEY)) {
        Some(newest) => separated(newest).iter().filter_map(|text| read(text)).collect(),
        None => unpack_older(map),
    }
}

/// The documents that gateways of the last release read, by their keys. Skips those that this version cannot read.
pub(super) fn unpack_older(map: &ConfigMap) -> BTreeMap<String, Document> {
    let plain = map.data.iter().flatten().filter(|(key, _)| key.ends_with(".json"));
    let plain = plain.map(|(_, text)| text.as_str());
    let compressed = map.binary_data.as_ref().and_then(|binary| binary.get(pod::COMPRESSED_KEY));
    let compressed = compressed.map(separated).unwrap_or_default();
    plain.chain(compressed.iter().map(String::as_str)).filter_map(read).collect()
}

/// The texts of a compressed file of YAML documents.
fn separated(compressed: &ByteString) -> Vec<String> {
    let joined = gunzip(&compressed.0).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    joined.split(SEPARATOR).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Reads a document as a gateway does. Its key is the file of its problems.
fn read(text: &str) -> Option<(String, Document)> {
    let named: DocumentHead = serde_json::from_str(text).ok()?;
    let key = key(named.kind, &named.metadata.name);
    let document = document::parse(&key, text).ok()?.pop()?;
    Some((key, document))
}

/// The fields of a document that its key is made of.
#[derive(serde::Deserialize)]
struct DocumentHead {
    kind: Kind,
    metadata: Metadata,
}

/// Writes a document and reads it again as a gateway does, so that its key is the file of its problems.
pub(super) fn keyed(document: &Document) -> Option<(String, Document)> {
    read(&serde_json::to_string(document).ok()?)
}

/// Compresses deterministically: equal input gives equal output, so an unchanged ConfigMap is not written again.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzipEncoder::new(Level::Default.into());
    let mut scratch = vec![0; 64 << 10];
    let mut encoded = Vec::new();
    let mut input = PartialBuffer::new(bytes);
    let mut finished = false;
    while !finished {
        let mut output = WriteBuffer::new_initialized(&mut scratch);
        // Writing to memory does not fail.
        finished = if input.unwritten().is_empty() {
            encoder.finish(&mut output).unwrap_or(true)
        } else {
            encoder.encode(&mut input, &mut output).is_err()
        };
        encoded.extend_from_slice(output.written());
    }
    encoded
}

/// Decompresses, up to about twice what a gateway would read.
fn gunzip(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let limits = Limits { decoded_bytes: 2 * DECODED as u64, ..Limits::default() };
    let mut decoder = Decoder::for_header("gzip", limits).ok()??;
    let mut decoded = Vec::new();
    while decoder.write(&mut bytes, &mut decoded).ok()? == Wrote::Full {}
    decoder.finish().ok()?;
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{candidate, policy};
    use super::*;

    /// Policies of about this many bytes in all, their names counted, of hosts that compress or do not.
    fn documents(bytes: usize, compressible: bool) -> BTreeMap<String, Document> {
        let each = 64 << 10;
        (0..bytes.div_ceil(each))
            .map(|number| {
                let host = |at: usize| {
                    let text = format!("{number}-{at}");
                    let digest = crate::digest::sha256_hex(text.as_bytes());
                    if compressible {
                        format!("host-{text}.example.com")
                    } else {
                        format!("{}.{}", &digest[..32], &digest[32..])
                    }
                };
                let hosts: Vec<String> = (0..each / if compressible { 26 } else { 68 }).map(host).collect();
                let spec = format!(
                    "destinations: [{{name: d, action: Tunnel, hosts: [{}]}}]",
                    hosts.iter().map(|host| format!("{host:?}")).collect::<Vec<_>>().join(", ")
                );
                let document = candidate(&policy(&format!("p{number}"), &spec)).read.unwrap();
                keyed(&document).unwrap()
            })
            .collect()
    }

    fn map(packed: PackedDocuments) -> ConfigMap {
        ConfigMap { data: Some(packed.data), binary_data: Some(packed.binary_data), ..ConfigMap::default() }
    }

    fn revision(documents: &BTreeMap<String, Document>) -> String {
        crate::policy::compile::revision(&documents.values().cloned().collect::<Vec<_>>())
    }

    #[test]
    fn a_few_documents_lie_one_a_key() {
        let all = documents(1 << 16, true);
        let packed = pack(&all, 1000).unwrap();
        assert!(packed.data.contains_key("namespace-p0.json") && packed.binary_data.is_empty());
        assert_eq!(revision(&unpack(&map(packed))), revision(&all));
    }

    #[test]
    fn a_revision_near_a_mebibyte_goes_compressed() {
        let all = documents(1 << 20, true);
        let packed = pack(&all, 1000).unwrap();
        assert!(packed.data.is_empty());
        assert!(packed.binary_data[pod::COMPRESSED_KEY].0.len() < 512 << 10);
        assert_eq!(pack(&all, 1000).unwrap(), packed, "the same documents are the same bytes");
        assert_eq!(revision(&unpack(&map(packed))), revision(&all));
    }

    #[test]
    fn a_gateway_reads_back_what_was_compressed() {
        let host = |policy: usize, at: usize| {
            let digest = crate::digest::sha256_hex(format!("{policy}-{at}").as_bytes());
            format!("\"{}.{}\"", &digest[..32], &digest[32..])
        };
        let all: BTreeMap<String, Document> = (0..1_500)
            .map(|number| {
                let hosts: Vec<String> = (0..16).map(|at| host(number, at)).collect();
                let spec = format!(
                    "{{\"destinations\": [{{\"name\": \"d\", \"action\": \"Tunnel\", \"hosts\": [{}]}}]}}",
                    hosts.join(",")
                );
                let text = format!(
                    "{{\"apiVersion\": \"postern.dev/v1alpha1\", \"kind\": \"EgressPolicy\", \"metadata\": \
                     {{\"name\": \"p{number}\", \"namespace\": \"agents\"}}, \"spec\": {spec}}}"
                );
                read(&text).unwrap()
            })
            .collect();
        let packed = pack(&all, 1000).unwrap();
        let compressed = &packed.binary_data[pod::COMPRESSED_KEY].0;
        assert!(compressed.len() > 800 << 10, "{} bytes", compressed.len());

        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(pod::COMPRESSED_KEY), compressed).unwrap();
        let source = crate::config::source::read_policy(directory.path()).unwrap();
        let documents: Vec<Document> =
            source.files.iter().flat_map(|(file, text)| document::parse(file, text).unwrap()).collect();
        assert_eq!(documents.len(), 1_500);
        assert_eq!(crate::policy::compile::revision(&documents), revision(&all));
    }

    #[test]
    fn two_forms_lie_beside_each_other_and_a_gateway_reads_either() {
        let (newest, older) = (documents(1 << 17, true), documents(1 << 16, true));
        let packed = pack_both(&newest, &older, 1000).unwrap();
        let map = map(packed);
        assert_eq!(revision(&unpack(&map)), revision(&newest));
        assert_eq!(revision(&unpack_older(&map)), revision(&older));
        assert!(pack_both(&documents(2 << 20, false), &documents(1 << 19, true), 1000).is_err());
    }

    #[test]
    fn what_does_not_fit_even_compressed_is_said() {
        let error = pack(&documents(3 << 20, false), 1000).unwrap_err();
        assert!(error.compressed > BOUND && error.to_string().contains("1 MiB"), "{error}");
    }

    #[test]
    fn what_this_version_cannot_read_is_left_out() {
        let all = documents(1000, true);
        let mut map = map(pack(&all, 0).unwrap());
        map.data.as_mut().unwrap().insert("namespace-x.json".to_owned(), "{\"kind\": \"Later\"}".to_owned());
        assert_eq!(unpack(&map).len(), all.len());
    }
}
