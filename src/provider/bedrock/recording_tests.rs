//! Recorded streams of Bedrock, from beside the repository: under every verdict they stay what SDKs accept.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value as Json;

use super::testing::{KEEP, STRIP, Turns, drafted, guard, lines, streamed, whole};
use crate::provider::answer::testing::recorded;

/// The recordings with this ending.
fn recordings(ending: &str) -> Vec<PathBuf> {
    let found = ["bedrock/live", "bedrock/vercel"].into_iter().flat_map(recorded);
    found.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// `MODEL/OPERATION`, as the recording's request had it.
fn path_of(recording: &Path) -> String {
    let name = recording.to_string_lossy();
    let (stem, _) = name.split_once(".re").unwrap_or((&name, ""));
    let Ok(text) = fs::read_to_string(format!("{stem}.meta.json")) else {
        return "amazon.nova-lite-v1%3A0/converse-stream".to_owned();
    };
    let meta: Json = serde_json::from_str(&text).unwrap();
    meta["uri"].as_str().unwrap().split_once("/model/").unwrap().1.to_owned()
}

/// What is open, begins and ends in a stream of Converse: SDKs and agents rely on all of it.
fn check(lines: &[String], name: &Path) {
    let (mut open, mut next, mut calls, mut reason) = (None, 0, 0, None);
    for line in lines {
        let (event, json) = line.split_once(' ').unwrap();
        let json: Json = serde_json::from_str(json).unwrap();
        let index = json["contentBlockIndex"].as_u64();
        match event {
            "contentBlockStart" => {
                assert_eq!((open, index), (None, Some(next)), "{name:?}: {line}");
                calls += u32::from(
                    json["start"]["toolUse"]["type"] != "server_tool_use"
                        && json["start"]["toolUse"].is_object(),
                );
                open = index;
            }
            "contentBlockDelta" => {
                assert!(open == index || (open.is_none() && index == Some(next)), "{name:?}: {line}");
                open = index;
            }
            "contentBlockStop" => {
                assert_eq!(open.take(), index, "{name:?}: {line}");
                next += 1;
            }
            "messageStop" => reason = json["stopReason"].as_str().map(str::to_owned),
            _ => {}
        }
    }
    assert_eq!(open, None, "{name:?}");
    assert!(reason.as_deref() != Some("tool_use") || calls > 0, "{name:?}: {reason:?}");
    assert!(reason.as_deref() != Some("end_turn") || calls == 0, "{name:?}: {reason:?}");
}

#[test]
fn a_recorded_stream_in_which_nothing_is_denied_stays_byte_for_byte() {
    for recording in recordings(".bin") {
        let stream = fs::read(&recording).unwrap();
        let path = path_of(&recording);
        for piece in [1, 7, 1000, stream.len()] {
            let (out, ended) = streamed(&path, Turns::AllowAll, &stream, piece);
            assert_eq!(ended, Ok(()), "{recording:?}");
            assert!(out == stream, "{recording:?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_recorded_stream_in_which_calls_are_denied_stays_in_order_however_it_is_cut() {
    let judges: [fn() -> Turns; 3] =
        [|| Turns::DenyAll, || Turns::DenyAtStart, || Turns::EveryOther(Mutex::new(0))];
    for recording in recordings(".bin") {
        let stream = fs::read(&recording).unwrap();
        let path = path_of(&recording);
        for judge in judges {
            let (out, ended) = streamed(&path, judge(), &stream, stream.len());
            assert_eq!(ended, Ok(()), "{recording:?}");
            let after = lines(&out);
            if path.contains("converse") {
                check(&after, &recording);
            }
            for piece in [1, 64, 333] {
                assert!(
                    streamed(&path, judge(), &stream, piece).0 == out,
                    "{recording:?} in pieces of {piece}"
                );
            }
            let had_calls = lines(&stream)
                .iter()
                .any(|line| line.contains(r#""toolUse":{"name"#) || line.contains("toolUseId"));
            assert_eq!(out != stream, had_calls, "{recording:?}");
        }
    }
}

#[test]
fn usage_and_model_of_recorded_streams_are_read() {
    for recording in recordings(".bin") {
        let stream = fs::read(&recording).unwrap();
        let mut guard = guard(&path_of(&recording), Turns::AllowAll);
        let mut out = Vec::new();
        guard.write(stream.into(), &mut out).unwrap();
        guard.finish(&mut out).unwrap();
        let facts = guard.facts();
        assert!(facts.usage.input.is_some() && facts.usage.output.is_some(), "{recording:?}: {facts:?}");
        assert!(facts.model.is_some(), "{recording:?}");
    }
}

#[test]
fn recorded_whole_answers_are_edited_only_where_a_call_is_denied() {
    for recording in recordings("response.json") {
        let body = fs::read_to_string(&recording).unwrap();
        let path = path_of(&recording);
        assert_eq!(whole(&path, Turns::AllowAll, &body).unwrap(), body, "{recording:?}");
        let denied: Json = serde_json::from_str(&whole(&path, Turns::DenyAll, &body).unwrap()).unwrap();
        let before: Json = serde_json::from_str(&body).unwrap();
        assert!(
            !denied.to_string().contains("toolUse") && !denied.to_string().contains("toolResult"),
            "{recording:?}"
        );
        assert_ne!(denied["stopReason"], "tool_use", "{recording:?}");
        assert_eq!(denied["usage"], before["usage"]);
    }
}

#[test]
fn recorded_requests_without_hosted_tools_go_on_as_they_came() {
    for recording in recordings("request.json") {
        let body = fs::read_to_string(&recording).unwrap();
        let path = path_of(&recording);
        assert!(drafted(&path, &body, KEEP).unwrap().body.is_none(), "{recording:?}");
        let edited = drafted(&path, &body, STRIP).unwrap().body;
        assert_eq!(edited.is_some(), body.contains("systemTool"), "{recording:?}");
        assert!(!edited.is_some_and(|body| String::from_utf8(body).unwrap().contains("systemTool")));
    }
}
