//! What the command of a run trusts, and what the gateway trusts beyond the system's roots.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::environment::{ADDED_ROOTS, BUNDLES};
use crate::config::source;
use crate::tls::roots::system_bundle;

/// Bundles are some hundred kilobytes.
const MAX_BYTES: u64 = 16 << 20;

/// PEM texts.
pub(super) struct Trusted {
    /// The system's roots, the user's own, Postern's CA.
    pub(super) bundle: String,
    /// The user's own and Postern's CA.
    pub(super) added: String,
    /// The user's own: what their environment names besides the system's, but Postern's CA.
    pub(super) users: String,
    /// The files that hold the user's own.
    pub(super) files: Vec<PathBuf>,
}

impl Trusted {
    /// `own` is the PEM of Postern's CA.
    pub(super) fn collect(own: &str, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let system = System::read();
        let (users, files) = users(&system, own, variable);
        let added = format!("{users}{}\n", own.trim_end());
        Self { bundle: format!("{}\n{added}", system.pem.trim_end()), added, users, files }
    }
}

/// The roots of the system.
struct System {
    path: Option<&'static Path>,
    pem: String,
}

impl System {
    /// The bundle, else what the platform keeps elsewhere (the keychain of macOS).
    fn read() -> Self {
        let path = system_bundle();
        let text = path.and_then(|path| source::read_text(path, MAX_BYTES).ok());
        let pem = text.unwrap_or_else(|| {
            rustls_native_certs::load_native_certs().certs.iter().map(|root| pem(root)).collect()
        });
        Self { path, pem }
    }
}

/// The certificates in files that the environment names, each once, with those files.
fn users(system: &System, own: &str, variable: &dyn Fn(&str) -> Option<String>) -> (String, Vec<PathBuf>) {
    let mut seen: HashSet<_> = certificates(&system.pem).collect();
    let own: Vec<_> = certificates(own).filter_map(|der| public_key(&der)).collect();
    let (mut added, mut files) = (String::new(), Vec::new());
    let named: BTreeSet<_> =
        BUNDLES.iter().chain(ADDED_ROOTS).filter_map(|name| variable(name)).map(PathBuf::from).collect();
    for file in named.into_iter().filter(|file| Some(file.as_path()) != system.path) {
        let Ok(text) = source::read_text(&file, MAX_BYTES) else {
            tracing::warn!(file = %file.display(), "it is named by the environment for its roots, and unreadable");
            continue;
        };
        let before = added.len();
        for der in certificates(&text) {
            // A CA of ours would let whoever holds its key pose as any upstream.
            let fit = public_key(&der).is_some_and(|key| !own.contains(&key));
            if fit && !seen.contains(&der) {
                added.push_str(&pem(&der));
                seen.insert(der);
            }
        }
        if added.len() > before {
            files.push(file);
        }
    }
    (added, files)
}

fn certificates(text: &str) -> impl Iterator<Item = CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text.as_bytes()).filter_map(Result::ok)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;
    use crate::tls::init;

    fn ca(directory: &Path, name: &str) -> (PathBuf, String) {
        let directory = directory.join(name);
        init::init(&directory, SystemTime::now()).unwrap();
        let file = directory.join(init::CERTIFICATE);
        let text = fs::read_to_string(&file).unwrap();
        (file, text)
    }

    #[test]
    fn the_users_own_roots_are_added_once_and_never_posterns() {
        let directory = tempfile::tempdir().unwrap();
        let (own_file, own) = ca(directory.path(), "own");
        let (corp_file, corp) = ca(directory.path(), "corp");
        let mixed = directory.path().join("mixed.pem");
        fs::write(&mixed, format!("{own}{corp}{corp}no certificate\n")).unwrap();
        let variable = |name: &str| {
            let file = match name {
                "SSL_CERT_FILE" => &mixed,
                "NODE_EXTRA_CA_CERTS" => &own_file,
                "CURL_CA_BUNDLE" => &corp_file,
                "PIP_CERT" => Path::new("/nonexistent/x.pem"),
                _ => return None,
            };
            Some(file.to_str().unwrap().to_owned())
        };
        let trusted = Trusted::collect(&own, &variable);
        let count = |text: &str| certificates(text).count();
        assert_eq!((count(&trusted.users), count(&trusted.added)), (1, 2));
        assert_eq!(certificates(&trusted.users).next(), certificates(&corp).next());
        assert_eq!(trusted.files, [corp_file]);
        assert!(count(&trusted.bundle) >= 2);
        assert_eq!(certificates(&trusted.bundle).last(), certificates(&own).next());
    }
}
