//! Markers in every spelling of `system` are found and cut out, and nothing else is touched.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::marker::{Marked, marked};
use crate::wire::json::{Document, Limits};

const MARKER: &str = "<!-- @proxy-local-route:af83e9 model=coder -->";

fn found(body: &str) -> Option<Marked> {
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    marked(&document, |token| token == "af83e9").unwrap()
}

/// What a system prompt becomes, as JSON.
fn cut(system: &str) -> Option<String> {
    let marked = found(&format!(r#"{{"model":"m", "system" : {system},"max_tokens":1}}"#))?;
    assert_eq!((&*marked.token, &*marked.label), ("af83e9", "coder"));
    let body = String::from_utf8(marked.body).unwrap();
    let kept =
        body.strip_prefix(r#"{"model":"m", "#).and_then(|rest| rest.strip_suffix(r#""max_tokens":1}"#));
    Some(kept.unwrap().to_owned())
}

#[test]
fn markers_of_a_text_are_cut_with_one_line_break() {
    for (before, after) in [
        (format!("{MARKER}\\nYou are."), "You are."),
        (format!("You are.\\n{MARKER}"), "You are.\\n"),
        (format!("You{MARKER}are."), "Youare."),
        (format!("a\\n{MARKER}\\n\\nb"), "a\\n\\nb"),
        (format!("{MARKER}\\r\\na"), "a"),
        (format!("{MARKER}\\ra"), "\\ra"),
        (format!("{MARKER}{MARKER}\\n{MARKER}\\nä\\/\\u0041"), "ä\\/\\u0041"),
        (MARKER.replace('<', "\\u003c").replace('>', "\\u003e") + "\\u000aa", "a"),
        (MARKER.replace("proxy", "\\u0070roxy") + "a", "a"),
        (format!("🙂\\ud83d\\ude42{MARKER}🙂"), "🙂\\ud83d\\ude42🙂"),
        (format!("{MARKER}{}", MARKER.replace("coder", "chat") + "a"), "a"),
    ] {
        assert_eq!(cut(&format!("\"{before}\"")).unwrap(), format!("\"system\" : \"{after}\","), "{before}");
    }
}

#[test]
fn blocks_of_text_are_searched_each_for_itself() {
    let block = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let system = format!("[{},{}]", block("a"), block(&format!("{MARKER}\\nb")));
    assert_eq!(cut(&system).unwrap(), format!("\"system\" : [{},{}],", block("a"), block("b")));
    let (head, tail) = MARKER.split_at(20);
    assert_eq!(cut(&format!("[{},{}]", block(head), block(tail))), None, "it is split");
    assert_eq!(cut(&format!(r#"[{{"type":"note","text":"{MARKER}"}}]"#)), None, "no block of text");
    assert_eq!(cut(&format!(r#"[{{"type":"text","title":"{MARKER}","text":"a"}}]"#)), None);
}

#[test]
fn an_emptied_block_goes_and_its_cache_breakpoint_moves_to_the_one_before() {
    let empty = format!(r#"{{"type":"text","text":"{MARKER}\n","cache_control":{{"type":"ephemeral"}}}}"#);
    let system = format!(r#"[{{"type":"text","text":"a"}}, {empty}, {{"type":"text","text":"b"}}]"#);
    let kept =
        r#"[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}, {"type":"text","text":"b"}]"#;
    assert_eq!(cut(&system).unwrap(), format!("\"system\" : {kept},"));
    let has_one = r#"{"type":"text","text":"a","cache_control":{"ttl":"1h"}}"#;
    assert_eq!(cut(&format!("[{has_one},{empty}]")).unwrap(), format!("\"system\" : [{has_one}],"));
    let first = format!(r#"[{empty},{{"type":"text","text":"b"}}]"#);
    assert_eq!(cut(&first).unwrap(), r#""system" : [{"type":"text","text":"b"}],"#);
    let two = format!(r#"[{{"type":"text","text":"a"}},{empty},{empty}]"#);
    let kept = r#"[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]"#;
    assert_eq!(cut(&two).unwrap(), format!("\"system\" : {kept},"));
}

#[test]
fn a_system_prompt_of_which_nothing_is_left_goes() {
    for system in [format!("\"{MARKER}\\n \""), format!(r#"[{{"type":"text","text":"{MARKER}"}}]"#)] {
        assert_eq!(cut(&system).unwrap(), "", "{system}");
    }
}

#[test]
fn what_is_no_marker_of_ours_stays() {
    for other in [
        "<!-- @proxy-local-route:other1 model=coder -->",
        "<!-- @proxy-local-route:AF83E9 model=coder -->",
        "<!--@proxy-local-route:af83e9 model=coder-->",
        "<!-- @proxy-local-route:af83e9  model=coder -->",
        "<!-- @proxy-local-route:af83e9 model= -->",
        "<!-- @proxy-local-route:af83e9 model=a b -->",
        "<!-- @proxy-local-route:af83e9 model=coder ->",
        "<!-- @proxy-local-route:af83e9 model=coder",
        "<!-- @proxy-local-route:",
    ] {
        assert_eq!(cut(&format!("\"{other}\"")), None, "{other}");
    }
    let both = format!("\"<!-- @proxy-local-route:other1 model=x -->{MARKER}\"");
    let kept = "\"system\" : \"<!-- @proxy-local-route:other1 model=x -->\",";
    assert_eq!(cut(&both).unwrap(), kept);
}

#[test]
fn only_the_system_prompt_has_markers() {
    for body in [
        json!({"messages": [{"role": "user", "content": MARKER}]}),
        json!({"messages": [{"role": "system", "content": MARKER}]}),
        json!({"messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": MARKER}]}]}),
        json!({"tools": [{"name": "A", "description": MARKER, "input_schema": {}}]}),
        json!({"metadata": {"system": MARKER}}),
        json!({"system": {"type": "text", "text": MARKER}}),
        json!([MARKER]),
    ] {
        assert_eq!(found(&body.to_string()), None, "{body}");
    }
}

#[test]
fn a_label_that_names_no_model_is_told_and_the_first_one_counts() {
    let body = json!({"system": [
        {"type": "text", "text": "<!-- @proxy-local-route:af83e9 model=qwen3:8b/\"x -->"},
        {"type": "text", "text": MARKER},
        {"type": "text", "text": "a"},
    ]});
    let marked = found(&body.to_string()).unwrap();
    assert_eq!(marked.label, "qwen3:8b/\"x");
    assert_eq!(marked.body, br#"{"system":[{"type":"text","text":"a"}]}"#);
}

/// Pieces of which texts with and without markers are made.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(MARKER.to_owned()),
        1 => Just("<!-- @proxy-local-route:other1 model=coder -->".to_owned()),
        1 => Just("<!-- @proxy-local-route:af83e9".to_owned()),
        1 => Just(" model=coder -->".to_owned()),
        3 => "[a-zé🙂<>!\\- \n\r\"\\\\]{0,6}",
    ]
}

/// A text as JSON, with some of its characters escaped by their numbers.
fn spelled(text: &str, escapes: &[bool]) -> String {
    let mut units = [0; 2];
    let spelled = text.chars().zip(escapes.iter().cycle()).map(|(character, escaped)| {
        if *escaped {
            character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        } else {
            let quoted = Value::from(character.to_string()).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
    });
    format!("\"{}\"", spelled.collect::<String>())
}

/// The same, found slowly.
fn expected(text: &str) -> String {
    let mut kept = text.to_owned();
    let mut from = 0;
    while let Some(at) = kept[from..].find(MARKER).map(|at| from + at) {
        let behind = &kept[at + MARKER.len()..];
        let line_break = ["\r\n", "\n"].into_iter().find(|line_break| behind.starts_with(line_break));
        kept.replace_range(at..at + MARKER.len() + line_break.map_or(0, str::len), "");
        // What comes together by a cut is no marker.
        from = at;
    }
    kept
}

proptest! {
    #[test]
    fn only_markers_are_cut_whatever_is_around_them(
        texts in prop::collection::vec(prop::collection::vec(piece(), 0..5).prop_map(|all| all.concat()), 1..4),
        escapes in prop::collection::vec(any::<bool>(), 1..7),
        is_whole in any::<bool>(),
    ) {
        let texts = if is_whole { &texts[..1] } else { &texts[..] };
        let blocks: Vec<String> = texts.iter().map(|text| spelled(text, &escapes)).collect();
        let block = |text: &String| format!(r#"{{ "type":"text","text":{text} }}"#);
        let listed = format!("[ {} ]", blocks.iter().map(block).collect::<Vec<_>>().join(" , "));
        let system = if is_whole { blocks[0].clone() } else { listed };
        let body = format!(r#"{{"a":[1, 2.0],"system":{system},"messages":"{MARKER}"}}"#);
        let is_marked = texts.iter().any(|text| text.contains(MARKER));
        let marked = found(&body);
        prop_assert_eq!(marked.is_some(), is_marked, "{}", body);
        let Some(marked) = marked else { return Ok(()) };
        let after = String::from_utf8(marked.body).unwrap();
        let end = format!(r#""messages":"{MARKER}"}}"#);
        prop_assert!(after.starts_with(r#"{"a":[1, 2.0],"#) && after.ends_with(&end), "{}", after);
        let kept: Vec<String> = texts
            .iter()
            .map(|text| (text, expected(text)))
            .filter(|(text, kept)| !text.contains(MARKER) || !kept.trim().is_empty())
            .map(|(_, kept)| kept)
            .collect();
        let after: Value = serde_json::from_str(&after).unwrap();
        let left: Vec<String> = match &after["system"] {
            Value::String(text) => vec![text.clone()],
            Value::Array(blocks) => blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        prop_assert_eq!(left, kept);
    }
}
