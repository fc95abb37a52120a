//! Writes the roots that agents trust to where they read them, and again whenever those change.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::command::roots::{Added, MAX_BYTES, System, certificates};
use crate::config::source;
use crate::config::trust::{OwnRoots, TrustSettings};
use crate::config::watch::Watched;
use crate::pod::{ADDED_FILE, BUNDLE_FILE, JAVA_FILE, JAVA_PASSWORD};
use crate::problem::is_passing;
use crate::tls::java;

/// Everybody may read what is written, nobody may change it.
const FILE: u32 = 0o444;
const DIRECTORY: u32 = 0o755;

/// Writes the roots for agents, and remembers what they were written from.
#[derive(Default)]
pub(super) struct TrustedRootsWriter {
    seen: Option<WrittenRoots>,
    error: Option<String>,
}

struct WrittenRoots {
    settings: TrustSettings,
    containers: Vec<OwnRoots>,
    watched: Watched,
}

impl TrustedRootsWriter {
    /// Writes the roots where anything has changed since the last look, or the last try failed. Returns why agents have
    /// no roots; none where they have them, or no settings ask for any.
    pub(super) fn look(&mut self, settings: Option<&TrustSettings>) -> Option<String> {
        let Some(settings) = settings else {
            *self = Self::default();
            return None;
        };
        let containers = match settings.containers() {
            Ok(containers) => containers,
            Err(error) => return self.failed(format!("the roots of containers cannot be listed: {error}")),
        };
        if self.error.is_none() && self.seen.as_mut().is_some_and(|seen| seen.is_of(settings, &containers)) {
            return None;
        }
        // Before the files are read, so that no change in between is missed.
        let watched = Watched::new(files(settings, &containers));
        let error = write(settings, &containers).err();
        self.seen = Some(WrittenRoots { settings: settings.clone(), containers, watched });
        if let Some(error) = error {
            return self.failed(error);
        }
        tracing::info!(directory = %settings.directory.display(), "the roots for agents are written");
        self.error = None;
        None
    }

    /// Remembers why there are no roots, so that the next look tries again.
    fn failed(&mut self, error: String) -> Option<String> {
        if self.error.as_ref() != Some(&error) {
            tracing::error!(%error, "agents do not have the roots that they are to trust");
        }
        self.error.insert(error).clone().into()
    }
}

impl WrittenRoots {
    fn is_of(&mut self, settings: &TrustSettings, containers: &[OwnRoots]) -> bool {
        self.settings == *settings && self.containers == containers && !self.watched.changed()
    }
}

fn files(settings: &TrustSettings, containers: &[OwnRoots]) -> Vec<PathBuf> {
    let own = containers.iter().flat_map(|container| container.files.iter().cloned());
    own.chain([settings.roots.to_path_buf()]).collect()
}

/// # Errors
/// Files of Postern's roots that cannot be read or written.
fn write(settings: &TrustSettings, containers: &[OwnRoots]) -> Result<(), String> {
    let posterns = source::read_text(&settings.roots, MAX_BYTES).map_err(|problem| problem.to_string())?;
    if certificates(&posterns).flatten().next().is_none() {
        return Err(format!("{}: holds no certificate", settings.roots.display()));
    }
    let system = System::read().map_err(|problem| problem.to_string())?;
    if system.path.is_none() {
        tracing::warn!(
            "this image has no bundle of roots: agents trust what they brought along and Postern's alone, and no \
             server that is tunnelled; use an image with ca-certificates"
        );
    }
    write_three(&settings.directory, &system, "", &posterns)?;
    for OwnRoots { container, files } in containers {
        let own = own_roots(container, files, &system, &posterns)?;
        write_three(&settings.directory.join(container), &system, &own, &posterns)?;
    }
    Ok(())
}

/// The roots of one container, without those that are no roots: whoever brought them is not held up by them.
///
/// # Errors
/// A file is there and cannot be read now: it is tried again.
fn own_roots(container: &str, files: &[PathBuf], system: &System, posterns: &str) -> Result<String, String> {
    let mut added = Added::beside(system, posterns);
    for file in files {
        let file_name = file.display();
        match source::read_text(file, MAX_BYTES) {
            Err(problem) if problem.unread.is_some_and(is_passing) => return Err(problem.to_string()),
            Err(problem) => tracing::warn!(container, %problem, "roots of a container are left out"),
            Ok(text) => match added.take(&text).unfit {
                0 => {}
                unfit => tracing::warn!(container, file = %file_name, unfit, "what is no root is left out"),
            },
        }
    }
    Ok(added.pem)
}

/// The bundle, what is added to a client's own, and the bundle for Java.
fn write_three(directory: &Path, system: &System, own: &str, posterns: &str) -> Result<(), String> {
    let added = format!("{own}{}\n", posterns.trim_end());
    let bundle = format!("{}\n{added}", system.pem.trim_end());
    let mut roots: Vec<_> = certificates(&bundle).flatten().collect();
    let mut seen = HashSet::new();
    roots.retain(|root| seen.insert(root.clone()));
    let store = java::key_store(&roots, SystemTime::now(), JAVA_PASSWORD);
    let cannot = |error: io::Error| format!("{} cannot be written: {error}", directory.display());
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(directory).map_err(cannot)?;
    for (name, content) in
        [(BUNDLE_FILE, bundle.as_bytes()), (ADDED_FILE, added.as_bytes()), (JAVA_FILE, &store)]
    {
        replace(directory, name, content).map_err(cannot)?;
    }
    Ok(())
}

/// Puts a file in the place of the one before, so that whoever reads has either.
fn replace(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let new = directory.join(format!(".{name}.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE).open(&new)?;
    file.write_all(content)?;
    // Whatever the process's umask is.
    file.set_permissions(Permissions::from_mode(FILE))?;
    fs::rename(&new, directory.join(name))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::tls::init;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::write(place.path("roots.pem"), root()).unwrap();
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn settings(&self) -> TrustSettings {
            let own_roots = Some(self.path("own").into());
            TrustSettings {
                directory: self.path("trust").into(),
                roots: self.path("roots.pem").into(),
                own_roots,
            }
        }

        fn brings(&self, container: &str, name: &str, text: &str) {
            fs::create_dir_all(self.path("own").join(container)).unwrap();
            fs::write(self.path("own").join(container).join(name), text).unwrap();
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.path("trust").join(name)).unwrap()
        }
    }

    /// PEM of a root that nobody else has.
    fn root() -> String {
        let directory = tempfile::tempdir().unwrap();
        init::init(directory.path(), SystemTime::now()).unwrap();
        fs::read_to_string(directory.path().join(init::CERTIFICATE)).unwrap()
    }

    fn count(text: &str) -> usize {
        certificates(text).flatten().count()
    }

    #[test]
    fn three_files_are_written_for_all_and_for_each_container_with_roots_of_its_own() {
        let place = Place::new();
        let (corp, posterns) = (root(), fs::read_to_string(place.path("roots.pem")).unwrap());
        place.brings("agent", "SSL_CERT_FILE.pem", &format!("{corp}{posterns}"));
        place.brings("agent", "notes.txt", &root());

        assert_eq!(TrustedRootsWriter::default().look(Some(&place.settings())), None);

        assert_eq!((count(&place.read("ca.pem")), count(&place.read("agent/ca.pem"))), (1, 2));
        assert!(place.read("ca-bundle.pem").ends_with(&posterns));
        assert_eq!(count(&place.read("agent/ca-bundle.pem")), count(&place.read("ca-bundle.pem")) + 1);
        for name in ["ca-bundle.pem", "ca.pem", "java.jks", "agent/java.jks"] {
            let mode = fs::metadata(place.path("trust").join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, FILE, "{name}");
        }
        let store = fs::read(place.path("trust/agent/java.jks")).unwrap();
        assert_eq!(store[..4], [0xfe, 0xed, 0xfe, 0xed]);
        assert_eq!(fs::read_dir(place.path("trust/agent")).unwrap().count(), 3, "nothing is left behind");
    }

    #[test]
    fn what_is_no_root_of_a_container_is_left_out() {
        let place = Place::new();
        let corp = root();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        place.brings("agent", "a.pem", &format!("{broken}{corp}"));
        place.brings("agent", "b.pem", "no PEM");
        // What kubelet makes where the volume holds no such file.
        fs::create_dir(place.path("own/agent/c.pem")).unwrap();
        assert_eq!(TrustedRootsWriter::default().look(Some(&place.settings())), None);
        assert_eq!(count(&place.read("agent/ca.pem")), 2);
    }

    #[test]
    fn it_is_written_again_when_roots_change_and_not_before() {
        let place = Place::new();
        let mut trusting = TrustedRootsWriter::default();
        trusting.look(Some(&place.settings()));
        fs::remove_file(place.path("trust/ca.pem")).unwrap();
        assert_eq!(trusting.look(Some(&place.settings())), None);
        assert!(!place.path("trust/ca.pem").exists());
        fs::write(place.path("roots.pem"), root() + &root()).unwrap();
        assert_eq!(trusting.look(Some(&place.settings())), None);
        assert_eq!(count(&place.read("ca.pem")), 2);
        place.brings("agent", "a.pem", &root());
        assert_eq!(trusting.look(Some(&place.settings())), None);
        assert_eq!(count(&place.read("agent/ca.pem")), 3);
    }

    #[test]
    fn what_keeps_it_from_being_written_is_said_until_it_is_mended() {
        let place = Place::new();
        let mut trusting = TrustedRootsWriter::default();
        let roots = fs::read(place.path("roots.pem")).unwrap();
        fs::write(place.path("roots.pem"), "no PEM").unwrap();
        let error = trusting.look(Some(&place.settings())).unwrap();
        assert!(error.contains("roots.pem: holds no certificate"), "{error}");
        fs::write(place.path("roots.pem"), roots).unwrap();
        fs::write(place.path("trust"), "in the way").unwrap();
        let error = trusting.look(Some(&place.settings())).unwrap();
        assert!(error.contains("trust cannot be written"), "{error}");
        fs::remove_file(place.path("trust")).unwrap();
        assert_eq!(trusting.look(Some(&place.settings())), None);
        assert_eq!(trusting.look(None), None);
    }
}
