//! Sources that change, fail and come back, on real files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::policy::credential::SigV4;
use crate::secret::GREATEST;

fn credential(name: &str, source: Source) -> Arc<Credential> {
    Arc::new(Credential {
        id: RuleId::new(format!("agents/coding/credentials/{name}")),
        name: name.to_owned(),
        hosts: Vec::new(),
        ports: None,
        placeholder: format!("postern:{name}"),
        require: false,
        source,
        signing: None,
    })
}

fn value(store: &Store, credential: &Credential) -> Option<String> {
    store.secret(credential).map(|secret| String::from_utf8_lossy(secret.expose()).into_owned())
}

fn scrubbed(store: &Store, text: &str) -> String {
    let masked = store.needles().masked(text.as_bytes());
    masked.map_or_else(|| text.to_owned(), |masked| String::from_utf8(masked).unwrap())
}

#[test]
fn every_source_gives_its_value_without_the_trailing_newline() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("elsewhere");
    fs::write(directory.path().join("mounted"), "value-of-mounted\n").unwrap();
    fs::write(&file, "value-of-file\r\n").unwrap();
    let all = [
        credential("mounted", Source::Mounted),
        credential("file", Source::File(file)),
        credential("env", Source::Env("LLM_KEY".to_owned())),
    ];
    let env = |name: &str| (name == "LLM_KEY").then(|| "value-of-env".to_owned());
    let store = Store::load((&all, &[]), Some(directory.path()), &env);
    for credential in &all {
        assert_eq!(value(&store, credential).unwrap(), format!("value-of-{}", credential.name));
    }
    assert_eq!(store.problems(), []);
    assert_eq!(scrubbed(&store, "value-of-env value-of-file"), "************ *************");
}

#[test]
fn what_cannot_be_used_is_told_by_its_credential_and_place_without_the_value() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(directory.path().join(name), text).unwrap();
    write("empty", b"\n");
    write("short", b"canary7");
    write("large", &vec![b'c'; GREATEST + 10]);
    write("broken", b"canary-key\r\nx-evil: 1");
    write("same", b"postern:same\n");
    fs::create_dir(directory.path().join("folder")).unwrap();
    let names = ["empty", "short", "large", "broken", "same", "folder", "missing"];
    let mut all: Vec<_> = names.iter().map(|name| credential(name, Source::Mounted)).collect();
    all.push(credential("unset", Source::Env("NOT_SET".to_owned())));
    let store = Store::load((&all, &[]), Some(directory.path()), &|_| None);
    let problems: Vec<String> = store.problems().iter().map(ToString::to_string).collect();
    let expected = [
        "is empty",
        "fewer than 8 bytes",
        "more than 16384 bytes",
        "a line break at byte 11",
        "holds the placeholder itself",
        "is not a regular file",
        "cannot be read (entity not found)",
        "the environment variable NOT_SET is not set",
    ];
    assert_eq!(problems.len(), expected.len());
    for ((problem, expected), credential) in problems.iter().zip(expected).zip(&all) {
        assert!(problem.contains(expected), "{problem}");
        assert!(problem.starts_with(&format!("{}: ", credential.id)), "{problem}");
        assert!(!problem.contains("canary"), "{problem}");
        assert_eq!(value(&store, credential), None);
    }
    let nowhere = Store::load((&all[..1], &[]), None, &|_| None);
    assert!(nowhere.problems()[0].message.contains("credentials.directory is not written"));
}

#[test]
fn an_access_key_is_read_kept_and_scrubbed_in_all_its_parts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("aws");
    let write = |text: &str| fs::write(&path, text).unwrap();
    let signing = Some(SigV4 { service: "bedrock".to_owned(), region: "us-east-1".to_owned() });
    let all = [Arc::new(Credential { signing, ..Arc::unwrap_or_clone(credential("aws", Source::Mounted)) })];
    write(
        r#"{"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "first-secret", "sessionToken": "session-one"}"#,
    );
    let store = Store::load((&all, &[]), Some(directory.path()), &|_| None);
    assert_eq!(store.problems(), []);
    assert!(store.access_key(&all[0]).is_some() && store.secret(&all[0]).is_none());
    let text = "AKIDEXAMPLE first-secret session-one";
    assert_eq!(scrubbed(&store, text), "*********** ************ ***********");

    write("[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = other-secret\n");
    assert_eq!(store.refresh().changed, [all[0].id.clone()]);
    assert_eq!(
        scrubbed(&store, "first-secret other-secret session-one"),
        "************ ************ ***********"
    );

    write("canary-plain-key");
    let problems = store.refresh().problems;
    assert!(problems[0].message.contains("holds no access key: write JSON"), "{problems:?}");
    assert!(!problems[0].message.contains("canary"));
    write("aws_access_key_id=postern:aws\naws_secret_access_key=other-secret");
    assert!(store.refresh().problems[0].message.contains("holds the placeholder itself"));
    assert!(store.access_key(&all[0]).is_some(), "the last good value stays");

    // The same source, read as a plain key, is another value.
    write("plain-value-7");
    let plain = [credential("aws", Source::Mounted)];
    let next = Store::load((&plain, &[]), Some(directory.path()), &|_| None).after(&store);
    assert_eq!(value(&next, &plain[0]).as_deref(), Some("plain-value-7"));
    assert!(next.access_key(&plain[0]).is_none());
}

/// A Kubernetes Secret volume: `NAME -> ..data/NAME`, `..data -> ..DATE`.
struct Volume(tempfile::TempDir);

impl Volume {
    fn new(value: &str) -> Self {
        let volume = Self(tempfile::tempdir().unwrap());
        volume.switch("..1", value);
        symlink("..data/llm", volume.path().join("llm")).unwrap();
        volume
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn switch(&self, date: &str, value: &str) {
        fs::create_dir(self.path().join(date)).unwrap();
        fs::write(self.path().join(date).join("llm"), value).unwrap();
        symlink(date, self.path().join("..data_tmp")).unwrap();
        fs::rename(self.path().join("..data_tmp"), self.path().join("..data")).unwrap();
    }
}

#[test]
fn the_switch_of_a_secret_volume_is_seen_and_the_value_before_stays_scrubbed() {
    let volume = Volume::new("value-one");
    let all = [credential("llm", Source::Mounted)];
    let store = Store::load((&all, &[]), Some(&volume.path()), &|_| None);
    let needles = store.needles();
    assert_eq!(store.refresh(), Refreshed::default());
    assert!(Arc::ptr_eq(&needles, &store.needles()), "nothing is built where nothing changed");

    volume.switch("..2", "value-two");
    assert_eq!(store.refresh(), Refreshed { changed: vec![all[0].id.clone()], problems: Vec::new() });
    assert_eq!(value(&store, &all[0]).as_deref(), Some("value-two"));
    assert_eq!(scrubbed(&store, "value-one value-two"), "********* *********");
}

#[test]
fn the_last_good_value_stays_until_there_is_a_good_one() {
    let volume = Volume::new("value-one");
    let all = [credential("llm", Source::Mounted)];
    let store = Store::load((&all, &[]), Some(&volume.path()), &|_| None);
    volume.switch("..2", "");
    let refreshed = store.refresh();
    assert!(refreshed.changed.is_empty());
    assert!(refreshed.problems[0].message.ends_with("is empty; the last good value stays"));
    assert_eq!(store.problems(), refreshed.problems);
    assert_eq!(value(&store, &all[0]).as_deref(), Some("value-one"));

    // A new policy keeps it too, but not for another source of the same name.
    let next = Store::load((&all, &[]), Some(&volume.path()), &|_| None);
    assert_eq!(value(&next, &all[0]), None);
    let next = next.after(&store);
    assert_eq!(value(&next, &all[0]).as_deref(), Some("value-one"));
    assert_eq!(scrubbed(&next, "value-one"), "*********");
    let other = [credential("llm", Source::Env("LLM_KEY".to_owned()))];
    assert_eq!(value(&Store::load((&other, &[]), None, &|_| None).after(&store), &other[0]), None);

    volume.switch("..3", "value-three");
    assert!(store.refresh().problems.is_empty());
    assert_eq!(value(&store, &all[0]).as_deref(), Some("value-three"));
}
