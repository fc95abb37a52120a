//! Which roots are trusted upstream: the system's bundle, else those built in, and what settings add; never Postern's
//! own.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_native_certs::ErrorKind;

use super::file::{self, Flaw};
use crate::problem::{Problem, is_passing};

/// Where systems keep their bundle of roots, the common ones first. What `SSL_CERT_FILE` and the like name is added to
/// the first of them that is there, and replaces none.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/cacert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem",
];

/// The message for a file without any certificate.
pub(super) const NO_CERTIFICATE: &str =
    "it holds no certificate: expected PEM, `-----BEGIN CERTIFICATE-----`";

/// Roots on their way into a configuration, and the keys that must not be among them.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    store: RootCertStore,
    own: Vec<Vec<u8>>,
}

/// Where the base of trust comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseRoots {
    /// A bundle of the system.
    System(PathBuf),
    /// Mozilla's roots as of the build, because no bundle was found.
    BuiltIn,
}

/// The bundle of roots that this system keeps, if it keeps one: what a child process is to trust besides Postern's CA.
pub fn system_bundle() -> Option<&'static Path> {
    BUNDLES.iter().map(Path::new).find(|bundle| bundle.is_file())
}

impl Trust {
    /// The system's roots but Postern's own. `own` is the chain of Postern's CA: a root with the key of any of these
    /// is its own, however often it was reissued.
    ///
    /// # Errors
    /// A bundle is there and cannot be read now: nothing else takes its place.
    pub(super) fn of_system(own: &[CertificateDer<'_>]) -> Result<(Self, BaseRoots), Problem> {
        Self::of_bundles(BUNDLES.iter().map(Path::new), own)
    }

    fn of_bundles<'a>(
        bundles: impl Iterator<Item = &'a Path>,
        own: &[CertificateDer<'_>],
    ) -> Result<(Self, BaseRoots), Problem> {
        let mut keys = RootCertStore::empty();
        keys.add_parsable_certificates(own.iter().cloned());
        let own = keys.roots.iter().map(|anchor| anchor.subject_public_key_info.to_vec()).collect();
        let mut trust = Self { store: RootCertStore::empty(), own };
        let base = trust.add_base(bundles)?;
        let before = trust.store.len();
        trust.store.roots.retain(|anchor| !is_own(&trust.own, &anchor.subject_public_key_info));
        if trust.store.len() < before {
            tracing::warn!("the system's roots hold Postern's own CA: it is not trusted upstream");
        }
        Ok((trust, base))
    }

    fn add_base<'a>(&mut self, bundles: impl Iterator<Item = &'a Path>) -> Result<BaseRoots, Problem> {
        for bundle in bundles.filter(|bundle| bundle.is_file()) {
            let read = rustls_native_certs::load_certs_from_paths(Some(bundle), None);
            for error in read.errors {
                if let ErrorKind::Io { inner, .. } = &error.kind
                    && is_passing(inner.kind())
                {
                    let message = format!("{}: it cannot be read ({inner})", bundle.display());
                    return Err(Problem::unread("", message, inner));
                }
                tracing::warn!(bundle = %bundle.display(), %error, "a root of the system was skipped");
            }
            let (added, _) = self.store.add_parsable_certificates(read.certs);
            if added > 0 {
                return Ok(BaseRoots::System(bundle.to_owned()));
            }
        }
        self.store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        Ok(BaseRoots::BuiltIn)
    }

    /// Adds the certificates of the PEM files that stand at `path` in the settings; says all that is wrong with them.
    pub(super) fn add_files(&mut self, path: &str, files: &[impl AsRef<Path>]) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        for (index, file) in files.iter().map(AsRef::as_ref).enumerate() {
            if let Err(flaw) = self.add_file(file) {
                problems.push(flaw.at(format!("{path}[{index}]"), file));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Adds the certificates of files that the environment names, as `postern run` does: what is no root is skipped, and
    /// so are Postern's own, which the bundle of a run holds.
    ///
    /// # Errors
    /// A file is there and cannot be read now: nobody knows what it adds.
    pub(super) fn add_environment(&mut self, files: &[PathBuf]) -> Result<(), Problem> {
        for path in files {
            let text = match file::read(path) {
                Ok(text) => text,
                Err(error) if is_passing(error.kind()) => {
                    return Err(Flaw::from(error).at("", path));
                }
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "the environment names it for its roots, and it cannot be read");
                    continue;
                }
            };
            let mut found = RootCertStore::empty();
            found.add_parsable_certificates(CertificateDer::pem_slice_iter(text.as_bytes()).flatten());
            found.roots.retain(|anchor| !is_own(&self.own, &anchor.subject_public_key_info));
            tracing::info!(file = %path.display(), roots = found.len(), "trusted upstream, as the environment says");
            self.store.extend(found.roots);
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), Flaw> {
        let text = file::read(path)?;
        let mut position = 0;
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            position += 1;
            certificate
                .map_err(|error| error.to_string())
                .and_then(|certificate| self.add(certificate))
                .map_err(|reason| format!("certificate {position} cannot be trusted: {reason}"))?;
        }
        if position == 0 {
            return Err(NO_CERTIFICATE.to_owned().into());
        }
        Ok(())
    }

    fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), String> {
        self.store.add(certificate).map_err(|error| error.to_string())?;
        if self.store.roots.last().is_some_and(|anchor| is_own(&self.own, &anchor.subject_public_key_info)) {
            return Err("it is of Postern's own CA, and whoever holds a key under it could pose as any upstream; \
                        remove it here (if upstreams are issued under the same root, give the CA that issues them)"
                .to_owned());
        }
        Ok(())
    }

    pub(super) fn into_store(self) -> RootCertStore {
        self.store
    }
}

fn is_own(own: &[Vec<u8>], public_key: &[u8]) -> bool {
    own.iter().any(|key| key == public_key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::TestCa;

    fn write(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn the_first_bundle_that_holds_a_root_is_the_base() {
        let (empty, full) = (write(""), write(&TestCa::root("Corp").pem()));
        let missing = Path::new("/nonexistent/bundle.pem");
        let (trust, base) = Trust::of_bundles([missing, empty.path(), full.path()].into_iter(), &[]).unwrap();
        assert_eq!(base, BaseRoots::System(full.path().to_owned()));
        assert_eq!(trust.into_store().len(), 1);
    }

    #[test]
    fn without_a_bundle_the_built_in_roots_are_the_base() {
        let (trust, base) = Trust::of_bundles(std::iter::empty(), &[]).unwrap();
        assert_eq!(base, BaseRoots::BuiltIn);
        assert!(trust.into_store().len() > 50);
    }

    #[test]
    fn posterns_own_ca_in_the_systems_bundle_is_not_trusted() {
        let (own, other) = (TestCa::root("Postern"), TestCa::root("Corp"));
        let reissued = own.reissued();
        let bundle = write(&format!("{}{}{}", own.pem(), reissued, other.pem()));
        let (trust, _) = Trust::of_bundles([bundle.path()].into_iter(), &[own.der()]).unwrap();
        assert_eq!(trust.into_store().len(), 1);
    }

    #[test]
    fn roots_of_the_environment_are_added_but_posterns_own() {
        let (own, corp) = (TestCa::root("Postern"), TestCa::root("Corp"));
        let bundle = write(&format!("{}{}no certificate\n", own.pem(), corp.pem()));
        let files = ["/nonexistent/x.pem".into(), bundle.path().to_owned()];
        let (mut trust, _) = Trust::of_bundles(std::iter::empty(), &[own.der()]).unwrap();
        let before = trust.store.len();
        trust.add_environment(&files).unwrap();
        assert_eq!(trust.into_store().len(), before + 1);
    }

    #[test]
    fn everything_wrong_with_added_roots_is_said_at_once() {
        let own = TestCa::root("Postern");
        let files = [write(&own.pem()), write("no PEM"), write(&TestCa::root("Corp").pem())];
        let mut paths: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
        paths.push("/nonexistent/x.pem".into());
        let (mut trust, _) = Trust::of_bundles(std::iter::empty(), &[own.der()]).unwrap();
        let problems = trust.add_files("upstream.roots", &paths).unwrap_err();
        let said: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(said, ["upstream.roots[0]", "upstream.roots[1]", "upstream.roots[3]"]);
        assert!(problems[0].message.contains("Postern's own CA"), "{}", problems[0]);
        assert!(problems[1].message.contains("no certificate"), "{}", problems[1]);
        assert!(problems[2].message.contains("cannot be read"), "{}", problems[2]);
    }
}
