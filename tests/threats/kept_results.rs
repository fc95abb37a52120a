//! Ends and full disks between the moment a tool result is kept and the moment its request is sent.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::json;

use super::requests::{MESSAGES, Models, models_with, reply};
use super::tool_results::{AGENT_PATH, SHORTENS, bash, conversation, keeping, log, named, sent};
use crate::routing::{ORIGIN, Routed, Scripts, VLLM, policy, routed_by};
use crate::support::journal::poll;
use crate::support::{Gateway, Setup, directory};

const DOOR: &str = "http://postern.internal/evidence/";

/// Keeps tool results in this directory, as the gateway before did.
fn keeping_in(place: &Path) -> impl FnOnce(Setup) -> Setup {
    let directory = place.display().to_string();
    move |setup| setup.set("/evidence", json!({"directory": directory, "agentPath": AGENT_PATH}))
}

/// Sends a request and does not wait for its answer.
fn begin(gateway: &Gateway, body: &str) -> crate::support::Connection {
    let mut connection = gateway.agent().tls(ORIGIN);
    connection.send(format!(
        "POST /v1/messages HTTP/1.1\r\nHost: {ORIGIN}\r\nContent-Type: application/json\r\nx-api-key: k\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    connection
}

fn kill(gateway: &mut Gateway) {
    gateway.signal("KILL");
    gateway.wait_for_exit();
}

/// What the model of a route was sent last.
fn read(test: &Routed, body: &str) -> String {
    let answer = test.post(MESSAGES, &[("x-api-key", "k")], body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    String::from_utf8(test.vllm.requests().pop().unwrap().body.to_vec()).unwrap()
}

/// O5: an end between the write and the send loses nothing: the next gateway sends the same cut, and has all of the text.
#[test]
fn a_gateway_killed_between_the_write_and_the_send_is_followed_by_one_that_sends_the_same_bytes() {
    let place = directory();
    let routes = policy("- {name: every, match: {models: ['*']}, to: [coder]}", &format!("  {SHORTENS}\n"));
    let body = conversation(MESSAGES, "go", &[bash(&log())]);
    // The model takes the connection and never says a word, so that nothing is sent.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let mut killed =
        routed_by(&routes, Scripts::default(), |setup| keeping_in(place.path())(setup.host(VLLM, address)));
    let _asking = begin(&killed.gateway, &body);
    let _dialled = silent.accept().unwrap();
    kill(&mut killed.gateway);
    let files: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(
        fs::read_to_string(&files[0]).unwrap(),
        log(),
        "the file was written before the model was dialled"
    );

    let next = routed_by(&routes, Scripts::default(), keeping_in(place.path()));
    let after = read(&next, &body);
    let ids = named(&after);
    assert_eq!(ids.len(), 1, "{after}");
    assert_eq!(next.gateway.agent().get(&format!("{DOOR}{}", ids[0])).text(), log());
    // The twin: a gateway that was never killed sends the same.
    let other = routed_by(&routes, Scripts::default(), keeping);
    assert_eq!(read(&other, &body), after);
}

/// O5: an end in the middle of a write leaves no part of a text that anybody is told, whenever it comes.
#[test]
fn a_gateway_killed_in_the_middle_of_a_write_leaves_nothing_half_written_to_be_read() {
    let text: String = (0..400_000).map(|n| format!("line {n} of a long result\n")).collect();
    let body = conversation(MESSAGES, "go", &[bash(&text)]);
    let undisturbed = sent(&models_with(SHORTENS, |seen| reply(seen.path()), keeping), MESSAGES, &body);
    let id = named(&undisturbed).remove(0);
    for _ in 0..3 {
        let place = directory();
        let gateway = || models_with(SHORTENS, |seen| reply(seen.path()), keeping_in(place.path()));
        let mut killed = gateway();
        let asking = begin(&killed.gateway, &body);
        poll("a file", || fs::read_dir(place.path()).unwrap().next().map(drop));
        kill(&mut killed.gateway);
        drop(asking);
        let next = gateway();
        let told = next.gateway.agent().get(&format!("{DOOR}{id}"));
        assert!(told.status == 404 || told.text() == text, "{}: {} bytes", told.status, told.body.len());
        assert_eq!(sent(&next, MESSAGES, &body), undisturbed);
        assert_eq!(next.gateway.agent().get(&format!("{DOOR}{id}")).text(), text);
        let left: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [format!("{id}.txt").as_str()], "no draft stays");
    }
}

/// O5: a file that lost its end with the machine is not told, and is whole again once a request carries its text.
#[test]
fn a_file_that_was_cut_short_is_told_by_nobody_and_mended_by_the_next_request() {
    let place = directory();
    let start = || models_with(SHORTENS, |seen| reply(seen.path()), keeping_in(place.path()));
    let body = conversation(MESSAGES, "go", &[bash(&log())]);
    let mut before = start();
    let cut = sent(&before, MESSAGES, &body);
    let id = named(&cut).remove(0);
    kill(&mut before.gateway);
    let file = place.path().join(format!("{id}.txt"));
    for half in [&log()[..1_000], "", &"x".repeat(log().len())] {
        fs::remove_file(&file).unwrap();
        fs::write(&file, half).unwrap();
        fs::write(place.path().join(format!("{id}.1.part")), half).unwrap();
        let next = start();
        assert_eq!(next.gateway.agent().get(&format!("{DOOR}{id}")).status, 404);
        assert_eq!(sent(&next, MESSAGES, &body), cut);
        assert_eq!(next.gateway.agent().get(&format!("{DOOR}{id}")).text(), log());
        assert_eq!(fs::read_to_string(&file).unwrap(), log());
    }
}

/// O5: on a full disk every request goes on uncut, and stays so; what was cut before stays cut.
#[test]
fn under_traffic_a_full_disk_leaves_results_uncut_and_every_request_is_answered() {
    let test = models_with(SHORTENS, |seen| reply(seen.path()), |setup| keeping(setup).with_full_disks());
    let of = |begins: &str| conversation(MESSAGES, begins, &[bash(&log().replace("case", begins))]);
    let before = sent(&test, MESSAGES, &of("before"));
    assert_eq!(named(&before).len(), 1);
    test.gateway.limit_files(Some(1_000));
    let clients: Vec<String> = (0..8).map(|client| of(&format!("client{client}"))).collect();
    let ask = |body: &str| {
        let headers = [("content-type", "application/json")];
        let url = format!("https://{MESSAGES}");
        assert_eq!(test.gateway.agent().request("POST", &url, &headers, body.as_bytes()).status, 200);
    };
    std::thread::scope(|scope| {
        for body in &clients {
            scope.spawn(|| (0..3).for_each(|_| ask(body)));
        }
    });
    assert_eq!(carried(&test, &clients), 24, "each of them uncut, byte for byte");
    assert_eq!(sent(&test, MESSAGES, &of("before")), before, "what is kept already stays cut");
    test.gateway.limit_files(None);
    for body in &clients {
        assert_eq!(&sent(&test, MESSAGES, body), body, "it was sent uncut, and stays so");
    }
    let files: Vec<_> = fs::read_dir(test.gateway.path().join("evidence")).unwrap().collect();
    assert_eq!(files.len(), 1, "no draft stays: {files:?}");
    // The twin: there is room again for texts that are new.
    assert_eq!(named(&sent(&test, MESSAGES, &of("after"))).len(), 1);
}

/// How many requests came with exactly one of these bodies.
fn carried(test: &Models, bodies: &[String]) -> usize {
    let seen = test.upstream.requests();
    seen.iter().filter(|seen| bodies.iter().any(|body| body.as_bytes() == seen.body)).count()
}
