//! Makes a CA for one machine and its user, and reports on it: `postern ca init` and `postern ca status`.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::authority::{Authority, serial_number};
use super::defect::rfc3339;
use super::gate::AuthorityEvidence;
use super::{file, fingerprint};

/// The CA's certificate, for everyone.
pub const CERTIFICATE: &str = "ca-cert.pem";
/// Its key, for its owner alone.
pub const KEY: &str = "ca-key.pem";
/// What `postern ca init` wrote down about it.
pub const METADATA: &str = "metadata.json";

/// Ten years. The certificate is trusted by nothing but the processes that `postern run` starts, so that a shorter
/// life would protect nobody and end in a morning when nothing works.
const LIFETIME: Duration = Duration::from_secs(3652 * 24 * 60 * 60);
/// Clients' clocks may be this much behind.
const BACKDATED: Duration = Duration::from_secs(60 * 60);

/// What `metadata.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// `sha256:` and 64 hex digits of the certificate's DER.
    pub fingerprint: String,
    /// RFC 3339.
    pub not_before: String,
    pub not_after: String,
    /// The program and its version.
    pub created_by: String,
}

/// What `postern ca status` says of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub certificate: PathBuf,
    /// Absent where the CA cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<AuthorityEvidence>,
    /// What is wrong, each with what to do; empty where all is well.
    pub problems: Vec<String>,
}

/// Why no CA was made.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    #[error("{path} exists, and a CA is never overwritten: give another --directory, or remove the old CA's files yourself",
        path = .0.display())]
    Exists(PathBuf),
    #[error("{path} could not be written ({cause})", path = path.display())]
    Unwritable { path: PathBuf, cause: io::Error },
    #[error("no CA could be made ({0})")]
    Unmakable(rcgen::Error),
}

/// Makes a CA in `directory`, which is made too (mode 0700) where it is missing: an ECDSA P-256 root of ten years that
/// may issue leaves only (path length 0), as `ca-cert.pem` (0644), `ca-key.pem` (0600) and `metadata.json` (0644).
/// Each file appears whole or not at all. Nothing is ever overwritten, also when two processes do this at once.
pub fn init(directory: &Path, now: SystemTime) -> Result<Metadata, InitError> {
    let unwritable = |cause| InitError::Unwritable { path: directory.to_owned(), cause };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unwritable)?;
    // One process at a time looks and writes; the lock ends with the handle.
    let lock = File::open(directory).map_err(unwritable)?;
    lock.lock().map_err(unwritable)?;
    for name in [CERTIFICATE, KEY, METADATA] {
        let path = directory.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(InitError::Exists(path));
        }
    }
    let (certificate, key, metadata) = make(now).map_err(InitError::Unmakable)?;
    let described = serde_json::to_string_pretty(&metadata).unwrap_or_default() + "\n";
    let mut written = Vec::new();
    for (name, content, mode) in [
        (METADATA, described.as_str(), 0o644),
        (KEY, key.as_str(), 0o600),
        (CERTIFICATE, &certificate, 0o644),
    ] {
        let path = directory.join(name);
        if let Err(error) = write_new(&path, content.as_bytes(), mode) {
            // Half a CA would stand in the way of the next attempt.
            written.iter().for_each(|path| drop(std::fs::remove_file(path)));
            return Err(error);
        }
        written.push(path);
    }
    Ok(metadata)
}

/// Makes a CA unless there is one. Answers whether it made it.
pub fn ensure(directory: &Path, now: SystemTime) -> Result<bool, InitError> {
    match init(directory, now) {
        Ok(_) => Ok(true),
        Err(InitError::Exists(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the CA of `directory` as the gateway would, and says what is wrong with it.
pub fn status(directory: &Path, now: SystemTime) -> Status {
    let paths = [CERTIFICATE, KEY, METADATA].map(|name| directory.join(name));
    let [certificate, ..] = &paths;
    if !paths.iter().any(|path| path.exists()) {
        let nothing = format!("there is no CA in {}: `postern ca init` makes one", directory.display());
        return Status { certificate: certificate.clone(), authority: None, problems: vec![nothing] };
    }
    let mut problems = Vec::new();
    let mut text = |name: &str| {
        let path = directory.join(name);
        file::read(&path).map_err(|error| problems.push(unread(&path, &error))).ok()
    };
    let (certificate, key, metadata) = (text(CERTIFICATE), text(KEY), text(METADATA));
    let authority = certificate.zip(key).and_then(|(certificate, key)| {
        Authority::load(&certificate, &key, now).map_err(|error| problems.push(error.to_string())).ok()
    });
    problems.extend(exposure(&directory.join(KEY)));
    let recorded = metadata.and_then(|text| serde_json::from_str::<Metadata>(&text).ok());
    if let (Some(authority), Some(recorded)) = (&authority, recorded)
        && authority.fingerprint() != recorded.fingerprint
    {
        problems.push(format!(
            "{METADATA} describes another CA, {}: somebody replaced {CERTIFICATE}; if you did, remove {METADATA}",
            recorded.fingerprint
        ));
    }
    let authority = authority.as_ref().map(AuthorityEvidence::of);
    Status { certificate: directory.join(CERTIFICATE), authority, problems }
}

fn unread(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    if error.kind() == io::ErrorKind::NotFound {
        return format!("{path} is missing: `postern ca init` makes a CA");
    }
    format!("{path} cannot be read ({error})")
}

fn exposure(key: &Path) -> Option<String> {
    let mode = key.metadata().ok()?.permissions().mode() & 0o777;
    let path = key.display();
    (mode & 0o077 != 0).then(|| {
        format!("{path} has mode {mode:04o}, so that others may read the CA's key: `chmod 600 {path}`")
    })
}

fn make(now: SystemTime) -> Result<(String, Zeroizing<String>, Metadata), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + LIFETIME).into();
    params.serial_number = Some(serial_number()?);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // Two CAs of one machine differ by name too: some trust stores look no further.
    let mark = fingerprint(key.public_key_raw());
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Postern");
    params
        .distinguished_name
        .push(DnType::CommonName, format!("Postern CA {}", mark.get(7..15).unwrap_or_default()));
    let certificate = params.self_signed(&key)?;
    let metadata = Metadata {
        fingerprint: fingerprint(certificate.der()),
        not_before: rfc3339(whole_second(params.not_before)),
        not_after: rfc3339(whole_second(params.not_after)),
        created_by: concat!("postern ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    Ok((certificate.pem(), Zeroizing::new(key.serialize_pem()), metadata))
}

/// As a certificate holds it.
fn whole_second(at: time::OffsetDateTime) -> time::OffsetDateTime {
    at.replace_nanosecond(0).unwrap_or(at)
}

/// Writes a file that is not there yet: whole under another name, then linked to its own, which fails where that is
/// taken. The mode holds from the first byte on, whatever the umask.
fn write_new(path: &Path, content: &[u8], mode: u32) -> Result<(), InitError> {
    let draft = path.with_extension("new");
    // Of a process that was killed here: the lock is ours.
    let _ = std::fs::remove_file(&draft);
    let linked = write_draft(&draft, content, mode).and_then(|()| std::fs::hard_link(&draft, path));
    let _ = std::fs::remove_file(&draft);
    linked.map_err(|cause| {
        if cause.kind() == io::ErrorKind::AlreadyExists {
            return InitError::Exists(path.to_owned());
        }
        InitError::Unwritable { path: path.to_owned(), cause }
    })
}

fn write_draft(draft: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(draft)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use x509_parser::prelude::*;

    use super::*;
    use crate::name::host::Host;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn it_makes_a_usable_ca_in_three_files_with_their_modes() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("postern/ca");
        let now = SystemTime::now();
        let made = init(&directory, now).unwrap();
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join(CERTIFICATE)), 0o644);
        assert_eq!(mode(&directory.join(KEY)), 0o600);
        assert_eq!(mode(&directory.join(METADATA)), 0o644);
        assert_eq!(directory.read_dir().unwrap().count(), 3, "no draft stays");
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(serde_json::from_str::<Metadata>(&read(METADATA)).unwrap(), made);
        let authority = Authority::load(&read(CERTIFICATE), &read(KEY), now).unwrap();
        assert_eq!(authority.fingerprint(), made.fingerprint);
        assert!(authority.caveats().is_empty());
        assert!(authority.mint(&Host::parse("api.example.com").unwrap(), now).is_ok());
    }

    #[test]
    fn the_ca_may_issue_leaves_only_and_lives_ten_years() {
        let directory = tempfile::tempdir().unwrap();
        init(directory.path(), SystemTime::now()).unwrap();
        let text = std::fs::read(directory.path().join(CERTIFICATE)).unwrap();
        let (_, pem) = parse_x509_pem(&text).unwrap();
        let x509 = pem.parse_x509().unwrap();
        let basic = x509.basic_constraints().unwrap().unwrap();
        assert!(basic.critical && basic.value.ca && basic.value.path_len_constraint == Some(0));
        let usage = x509.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.key_cert_sign() && usage.value.crl_sign());
        assert!(!usage.value.digital_signature());
        let years =
            (x509.validity().not_after.timestamp() - x509.validity().not_before.timestamp()) / (365 * 86_400);
        assert_eq!(years, 10);
        assert!(x509.subject().to_string().starts_with("O=Postern, CN=Postern CA "));
        assert_eq!(x509.raw_serial().len(), 16);
    }

    #[test]
    fn nothing_is_overwritten() {
        for name in [CERTIFICATE, KEY, METADATA] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(name);
            std::fs::write(&path, "mine").unwrap();
            let error = init(directory.path(), SystemTime::now()).unwrap_err();
            assert!(matches!(&error, InitError::Exists(found) if *found == path), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
            assert_eq!(directory.path().read_dir().unwrap().count(), 1);
        }
    }

    #[test]
    fn of_many_at_once_one_makes_it_and_all_find_it_whole() {
        let directory = tempfile::tempdir().unwrap();
        let together = Barrier::new(8);
        let made: Vec<bool> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        together.wait();
                        let made = ensure(directory.path(), SystemTime::now()).unwrap();
                        assert_eq!(
                            status(directory.path(), SystemTime::now()).problems,
                            Vec::<String>::new()
                        );
                        made
                    })
                })
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.into_iter().filter(|made| *made).count(), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_said() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = init(&file.path().join("ca"), SystemTime::now()).unwrap_err();
        assert!(matches!(error, InitError::Unwritable { .. }), "{error}");
    }

    #[test]
    fn status_tells_the_ca_and_what_is_wrong_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let now = SystemTime::now();
        let [nothing] = &status(directory.path(), now).problems[..] else { panic!("one problem") };
        assert!(nothing.contains("there is no CA in"), "{nothing}");

        let made = init(directory.path(), now).unwrap();
        let told = status(directory.path(), now);
        assert_eq!(told.problems, Vec::<String>::new());
        let authority = told.authority.unwrap();
        assert_eq!(
            (authority.fingerprint, authority.not_before, authority.not_after),
            (made.fingerprint, made.not_before, made.not_after)
        );

        std::fs::set_permissions(at(KEY), Permissions::from_mode(0o640)).unwrap();
        let other = tempfile::tempdir().unwrap();
        init(other.path(), now).unwrap();
        for name in [CERTIFICATE, KEY] {
            std::fs::copy(other.path().join(name), at(name)).unwrap();
        }
        std::fs::set_permissions(at(KEY), Permissions::from_mode(0o640)).unwrap();
        let [exposed, replaced] = &status(directory.path(), now).problems[..] else { panic!("two problems") };
        assert!(exposed.contains("has mode 0640") && exposed.contains("chmod 600"), "{exposed}");
        assert!(replaced.contains("describes another CA"), "{replaced}");

        std::fs::remove_file(at(KEY)).unwrap();
        let [missing] = &status(directory.path(), now).problems[..] else { panic!("one problem") };
        assert!(missing.contains("ca-key.pem is missing"), "{missing}");

        let later = status(other.path(), now + 2 * LIFETIME);
        assert!(
            later.authority.is_none() && later.problems[0].contains("expired at"),
            "{:?}",
            later.problems
        );
    }
}
