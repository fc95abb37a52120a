//! Collects the roots that agents are to trust: the system's, what they brought along, and Postern's, each once.

use std::collections::HashSet;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::config::source;
use crate::problem::{Problem, is_passing};
use crate::tls::roots::system_bundle;

/// Bundles are some hundred kilobytes.
pub(super) const MAX_BYTES: u64 = 16 << 20;

/// The roots of the system.
pub(super) struct System {
    /// Its bundle, where it keeps one.
    pub(super) path: Option<&'static Path>,
    pub(super) pem: String,
}

impl System {
    /// The bundle, else what the platform keeps elsewhere (the keychain of macOS).
    ///
    /// # Errors
    /// The bundle is there and cannot be read now.
    pub(super) fn read() -> Result<Self, Problem> {
        let path = system_bundle();
        let pem = match path.map(|path| source::read_text(path, MAX_BYTES)) {
            Some(Ok(text)) => text,
            Some(Err(problem)) if problem.unread.is_some_and(is_passing) => return Err(problem),
            Some(Err(_)) | None => {
                rustls_native_certs::load_native_certs().certs.iter().map(|root| pem(root)).collect()
            }
        };
        Ok(Self { path, pem })
    }
}

/// Roots besides the system's and Postern's, in the order in which they came.
pub(super) struct Added {
    seen: HashSet<CertificateDer<'static>>,
    own: Vec<Vec<u8>>,
    pub(super) pem: String,
}

/// The certificates of a text, by outcome.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Those that were not there before.
    pub(super) new: usize,
    /// Those that can be no root, or are no certificate at all.
    pub(super) unfit: usize,
}

impl Added {
    /// Nothing yet. `own` is the PEM of Postern's roots.
    pub(super) fn beside(system: &System, own: &str) -> Self {
        let own = certificates(own).flatten().filter_map(|der| public_key(&der)).collect();
        Self { seen: certificates(&system.pem).flatten().collect(), own, pem: String::new() }
    }

    /// Adds the certificates of a PEM text that are not there yet, and none of Postern's own: one with its key would
    /// let whoever holds that pose as any upstream.
    pub(super) fn take(&mut self, text: &str) -> Taken {
        let mut taken = Taken::default();
        for found in certificates(text) {
            let Some((key, der)) = found.and_then(|der| Some((public_key(&der)?, der))) else {
                taken.unfit += 1;
                continue;
            };
            if !self.own.contains(&key) && !self.seen.contains(&der) {
                self.pem.push_str(&pem(&der));
                self.seen.insert(der);
                taken.new += 1;
            }
        }
        taken
    }
}

/// The certificates of a PEM text; none for one that cannot be read.
pub(super) fn certificates(text: &str) -> impl Iterator<Item = Option<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(text.as_bytes()).map(Result::ok)
}

/// None where it cannot be a root.
fn public_key(der: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let mut store = RootCertStore::empty();
    store.add(der.clone()).ok()?;
    store.roots.first().map(|anchor| anchor.subject_public_key_info.to_vec())
}

fn pem(der: &CertificateDer<'_>) -> String {
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in BASE64_STANDARD.encode(der).as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}
