//! Conditions on inputs: hosts of URLs, and paths whose directory nobody here knows.

use serde_json::{Value, json};

use super::model::{Model, assert_without, call, message, named};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::parity::responses::Responses;

/// A stream of Messages with one call.
fn stream(name: &str, input: &Value) -> String {
    named(&message(&[call(0, "call_1", name, &[&input.to_string()])], "tool_use"))
}

#[track_caller]
fn assert_denied(model: &Model, name: &str, input: &Value, rule: &str) {
    let answer = model.ask(&Anthropic, Streamed, stream(name, input));
    assert_without(&answer, &["call_1"]);
    assert!(answer.text().contains(&format!("Rule: {rule}")), "{input}: {}", answer.text());
}

/// F24: a URL is compared by the host that every client would connect to; one that clients read differently is denied.
#[test]
fn a_url_is_compared_by_its_host() {
    let only_docs = "{name: docs, kind: Fetch, action: Deny, when: {param: url, operator: NotHostIn, \
                     values: [docs.example.com, '**.docs.example.com']}}";
    let never_evil = "{name: evil, tools: [page_links], action: Deny, when: {param: links.href, operator: HostIn, \
                      values: ['**.evil.test']}}";
    let model = Model::under(&format!("tools: [{only_docs}, {never_evil}]"));
    let fetch = |url: &str| json!({"url": url, "prompt": "Summarise it."});
    for url in [
        "https://docs.example.com.evil.test/",
        "https://docs.example.com@evil.test/",
        "https://docs.example.com:443@evil.test/",
        "https://docs.example.com\\@evil.test/",
        "https://evil.test#@docs.example.com/",
        "https://evil.test/docs.example.com",
        "https://docs.exam\tple.com/",
        "https:evil.test",
        "//evil.test/docs.example.com",
        "http://2130706433/",
        "http://127.0.0.1/",
        "https://docs%2eexample.com/",
        "file:///etc/passwd",
    ] {
        assert_denied(&model, "WebFetch", &fetch(url), "agents/test/docs");
    }
    let links = |url: &str| json!({"links": [{"href": "https://docs.example.com/"}, {"href": url}]});
    for url in
        ["https://a.evil.test/", "https://A.EVIL.TEST.:8443/x", "https://docs.example.com@a.evil.test/"]
    {
        assert_denied(&model, "page_links", &links(url), "agents/test/evil");
    }

    for url in [
        "https://docs.example.com/a?b=https://evil.test/#c",
        "https://DOCS.example.com.:8443/",
        "http://v2.docs.example.com/guide",
        "docs.example.com/guide",
    ] {
        model.assert_passes(&Anthropic, Streamed, stream("WebFetch", &fetch(url)));
    }
    model.assert_passes(&Anthropic, Streamed, stream("page_links", &links("https://evil.test.example.com/")));
}

/// F24: a relative path that does not climb has no directory here: no rule about directories is met by it, and none that
/// allows is; the built-in rule judges it still.
#[test]
fn a_relative_path_is_neither_inside_nor_outside() {
    let stay = "{name: stay, kind: Write, action: Deny, when: {param: paths, operator: NotWithin, values: [/workspace]}}";
    let model = Model::under(&format!("tools: [{stay}]"));
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    for path in
        ["/etc/passwd", "/workspace/../etc/passwd", "../etc/passwd", "a/../../etc", "~/notes", "$HOME/notes"]
    {
        assert_denied(&model, "Write", &write(path), "agents/test/stay");
    }
    assert_denied(&model, "Write", &write(".git/hooks/pre-commit"), "postern/builtin/agent-control-files");
    for path in ["src/main.rs", "./a/../b", "/workspace/src/main.rs"] {
        model.assert_passes(&Anthropic, Streamed, stream("Write", &write(path)));
    }
    let patch = "*** Begin Patch\n*** Update File: src/main.rs\n@@\n-a\n+b\n*** End Patch";
    let item = json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": "apply_patch",
                      "input": patch, "status": "completed"});
    let codex = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": null,
                       "model": "gpt-5", "output": [item], "tools": []});
    model.assert_passes(&Responses, Whole, codex.to_string());

    let inside = "{name: in, kind: Write, action: Allow, when: {param: paths, operator: Within, values: [/workspace]}}";
    let model = Model::under(&format!("toolDefault: Deny\ntools: [{inside}]"));
    assert_denied(&model, "Write", &write("src/main.rs"), "agents/test/toolDefault");
    model.assert_passes(&Anthropic, Streamed, stream("Write", &write("/workspace/src/main.rs")));
}
