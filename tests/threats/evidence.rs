//! Kept tool results as a way around: to other files, to another pod's, and to the gateway's end.

use std::os::unix::fs::symlink;

use crate::support::{Gateway, Pki, Setup};

const DOOR: &str = "http://postern.internal/evidence/";
const TEXT: &str = "what a tool said\n";
/// What `sha256sum` says of it first.
const ID: &str = "6d97b531a6fe80da0d98";
const OTHER: &str = "e3b0c44298fc1c149afb";

/// A gateway that keeps [`TEXT`]; its ledger and its keys are beside.
fn keeping(change: impl FnOnce(&Setup)) -> Gateway {
    let setup = Setup::new(&Pki::new("Upstream Test CA"))
        .set("/evidence/directory", "evidence")
        .set("/ledger/path", "ledger.db")
        .credential("key", "sk-canary-of-this-test");
    std::fs::create_dir(setup.path().join("evidence")).unwrap();
    std::fs::write(setup.path().join(format!("evidence/{ID}.txt")), TEXT).unwrap();
    change(&setup);
    setup.start()
}

/// Asks for these names of a directory that holds traps beside the text.
#[track_caller]
fn assert_nothing_told(names: &[&str]) {
    let gateway = keeping(|setup| {
        let place = setup.path().join("evidence");
        symlink("../credentials/key", place.join(format!("{OTHER}.txt"))).unwrap();
        symlink("../ledger.db", place.join("0123456789abcdef0123.txt")).unwrap();
        symlink("..", place.join("up")).unwrap();
        std::fs::write(place.join("draft.txt"), "draft").unwrap();
        std::fs::write(place.join("aaaaaaaaaaaaaaaaaaaa.txt"), "under a wrong name").unwrap();
    });
    for name in names {
        let answer = gateway.agent().get(&format!("{DOOR}{name}"));
        let text = answer.text();
        assert!(matches!(answer.status, 400 | 403 | 404), "{name}: {answer:?}");
        for secret in ["sk-canary", "SQLite", "draft\n", "wrong name", TEXT] {
            assert!(!text.contains(secret), "{name}: {text}");
        }
    }
}

/// O2: an id names one text, and nothing that an agent writes in its place leads to another file.
#[test]
fn nothing_but_an_id_is_read_from_the_directory_of_kept_results() {
    // Ten questions a second are answered.
    assert_nothing_told(&[
        "../credentials/key",
        "..%2fcredentials%2fkey",
        "%2e%2e/ledger.db",
        "..%252fledger.db",
        "up/ledger.db",
        "draft",
        "draft.txt",
        "",
        ".",
    ]);
    assert_nothing_told(&[
        OTHER,
        "0123456789abcdef0123",
        "aaaaaaaaaaaaaaaaaaaa",
        &format!("{ID}.txt"),
        &format!("{ID}.part"),
        &format!("{ID}/"),
        &format!("{ID}%00"),
        &format!("/{ID}"),
        &ID.to_uppercase(),
    ]);
}

/// O2, its twin: the text is told under its own id.
#[test]
fn a_kept_result_is_read_by_its_own_agent() {
    let gateway = keeping(|_| {});
    let answer = gateway.agent().get(&format!("{DOOR}{ID}"));
    assert_eq!((answer.status, answer.text().as_str()), (200, TEXT));
}

/// O2: what another gateway keeps is in its own directory, and unknown here.
#[test]
fn what_another_gateway_keeps_is_unknown() {
    let other = keeping(|_| {});
    let gateway = keeping(|setup| {
        std::fs::remove_file(setup.path().join(format!("evidence/{ID}.txt"))).unwrap();
    });
    assert_eq!(gateway.agent().get(&format!("{DOOR}{ID}")).status, 404);
    assert_eq!(other.agent().get(&format!("{DOOR}{ID}")).status, 200);
}
