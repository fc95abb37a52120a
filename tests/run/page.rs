//! `postern run --ui`: the page of the run's own events.

use std::io::{BufRead, BufReader, Write};

use super::User;
use crate::ui::Page;

#[test]
fn the_page_of_a_run_shows_its_events_while_it_lasts() {
    let user = User::new();
    let mut child = user.command(&["run", "--ui", "--", "sh", "-c", "read line"]).spawn().unwrap();
    let mut command = child.stdin.take().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = stderr.find(|line| line.contains("while it lasts, at ")).unwrap();
    let page = Page::at(line.split_once(" at ").unwrap().1, child, tempfile::tempdir().unwrap());

    let answer = page.until(|answer| answer["next"].as_u64() > Some(0));

    let texts = answer["rows"]["texts"].as_array().unwrap();
    assert!(texts.contains(&"Lifecycle".into()), "{answer}");
    command.write_all(b"\n").unwrap();
    assert!(stderr.by_ref().count() > 0, "the summary follows");
    assert!(std::net::TcpStream::connect(page.address).is_err(), "the page goes with the run");
}
