//! The roots that the command of a run trusts.

use std::path::PathBuf;

use crate::clients::named_roots;
use crate::command::roots::{Added, MAX_BYTES, System};
use crate::config::source;
use crate::problem::Problem;

/// PEM texts.
pub(super) struct Trusted {
    /// The system's roots, the user's own, Postern's CA.
    pub(super) bundle: String,
    /// The user's own, which the gateway trusts too, and Postern's CA.
    pub(super) added: String,
    /// The files that hold the user's own.
    pub(super) files: Vec<PathBuf>,
}

impl Trusted {
    /// `own` is the PEM of Postern's CA.
    ///
    /// # Errors
    /// The system's bundle cannot be read now.
    pub(super) fn collect(own: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Problem> {
        let system = System::read()?;
        let (users, files) = users(&system, own, variable);
        let added = format!("{users}{}\n", own.trim_end());
        Ok(Self { bundle: format!("{}\n{added}", system.pem.trim_end()), added, files })
    }
}

/// The certificates in files that the environment names, each once, with those files.
fn users(system: &System, own: &str, variable: &dyn Fn(&str) -> Option<String>) -> (String, Vec<PathBuf>) {
    let (mut added, mut files) = (Added::beside(system, own), Vec::new());
    let named = named_roots(variable).into_iter();
    for file in named.filter(|file| Some(file.as_path()) != system.path) {
        // The gateway warns of a file that it cannot read.
        let Ok(text) = source::read_text(&file, MAX_BYTES) else { continue };
        if added.take(&text).new > 0 {
            files.push(file);
        }
    }
    (added.pem, files)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::SystemTime;

    use super::*;
    use crate::command::roots::certificates;
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
        let trusted = Trusted::collect(&own, &variable).unwrap();
        let count = |text: &str| certificates(text).count();
        assert_eq!(count(&trusted.added), 2);
        assert_eq!(certificates(&trusted.added).next(), certificates(&corp).next());
        assert_eq!(trusted.files, [corp_file]);
        assert!(count(&trusted.bundle) >= 2);
        assert_eq!(certificates(&trusted.bundle).last(), certificates(&own).next());
    }
}
