//! Doors and models, vendor by vendor, each with its benign twin.

use super::testing::{Policy, STRICT, drafted, outcome};
use super::*;
use crate::call::{Api, Dialect, HostedAction, Service};
use crate::provider::adapter::ModelRequestHead;

fn read(vendor: Vendor, body: &str, policy: &Policy) -> String {
    let read = drafted(body, policy, |editor| {
        close_extensions(editor, vendor)?;
        models(editor, vendor)
    });
    outcome(body, read)
}

/// Asserts what becomes of each body.
#[track_caller]
fn expect(vendor: Vendor, table: &[(&str, &str)]) {
    for (body, expected) in table {
        assert_eq!(read(vendor, body, &STRICT), *expected, "{vendor:?} {body}");
    }
}

#[test]
fn parameters_that_make_a_vendor_act_are_removed_and_their_twins_stay() {
    expect(
        Vendor::OpenAi,
        &[
            (r#"{"model":"m","web_search_options":{}}"#, r#"{"model":"m"}"#),
            (r#"{"web_search_opti\u006fns":{} , "model":"m"}"#, r#"{"model":"m"}"#),
            (r#"{"model":"m","web_search_options":null}"#, r#"{"model":"m","web_search_options":null}"#),
            (r#"{"model":"m","plugins":[{"id":"web"}]}"#, r#"{"model":"m","plugins":[{"id":"web"}]}"#),
        ],
    );
    expect(
        Vendor::Groq,
        &[
            (r#"{"model":"m","compound_custom":{"tools":{}}}"#, r#"{"model":"m"}"#),
            (r#"{"search_settings":{},"include_domains":["a"],"model":"m"}"#, r#"{"model":"m"}"#),
            (r#"{"model":"m","temperature":1e0}"#, r#"{"model":"m","temperature":1e0}"#),
        ],
    );
    expect(Vendor::XAi, &[(r#"{"search_parameters":{"mode":"auto"}}"#, "{}")]);
    expect(
        Vendor::XAi,
        &[(r#"{"deferred":true}"#, "!state (deferred)"), (r#"{"deferred":false}"#, r#"{"deferred":false}"#)],
    );
    expect(Vendor::AzureOpenAi, &[(r#"{"data_sources":[{"type":"azure_search"}],"a":1}"#, r#"{"a":1}"#)]);
    expect(
        Vendor::Mistral,
        &[(r#"{"agent_id":"ag:1"}"#, "!agent_id"), (r#"{"agent_id":null}"#, r#"{"agent_id":null}"#)],
    );
    expect(Vendor::VertexAi, &[(r#"{"extra_body":{"google":{"cached_content":"c"}}}"#, "{}")]);
    expect(Vendor::Cohere, &[(r#"{"connectors":[{"id":"web-search"}]}"#, "{}")]);
}

#[test]
fn parameters_of_google_that_only_say_how_to_think_stay() {
    let thinking = r#"{"extra_body":{"google":{"thinking_config":{"thinking_budget":1}}}}"#;
    let with_cache = r#"{"extra_body":{"google":{"thinking_config":{},"cached_content":"c"}}}"#;
    expect(
        Vendor::Gemini,
        &[(thinking, thinking), (with_cache, "{}"), (r#"{"extra_body":{"tools":[]}}"#, "{}")],
    );
    expect(Vendor::OpenAi, &[(with_cache, with_cache)]);
}

#[test]
fn plugins_are_asked_about_one_by_one() {
    let body = r#"{"plugins": [ {"id":"web"}, {"id":"context-compression"} ],"model":"m"}"#;
    let allowing = Policy { allowed: &["openrouter:plugin:context-compression"], ..STRICT };
    assert_eq!(read(Vendor::OpenRouter, body, &STRICT), r#"{"model":"m"}"#);
    let kept = r#"{"plugins": [ {"id":"context-compression"} ],"model":"m"}"#;
    assert_eq!(read(Vendor::OpenRouter, body, &allowing), kept);
    expect(
        Vendor::OpenRouter,
        &[
            (
                r#"{"plugins":[{"id":"web","enabled":false}]}"#,
                r#"{"plugins":[{"id":"web","enabled":false}]}"#,
            ),
            (r#"{"plugins":[{}]}"#, "!the request cannot be understood: plugins: an entry has no id"),
            (r#"{"plugins":"web"}"#, "!the request cannot be understood: plugins: it is not a list"),
            (r#"{"plugins":[]}"#, r#"{"plugins":[]}"#),
        ],
    );
}

#[test]
fn the_ending_of_a_model_that_stands_for_a_plugin_is_taken_off() {
    expect(
        Vendor::OpenRouter,
        &[
            (r#"{"model": "openai/gpt-4o:online"}"#, r#"{"model": "openai/gpt-4o"}"#),
            (r#"{"model":"a/b:ONLINE:free"}"#, r#"{"model":"a/b:free"}"#),
            (r#"{"model":"a/b:free"}"#, r#"{"model":"a/b:free"}"#),
            (r#"{"model":"a/online"}"#, r#"{"model":"a/online"}"#),
            (
                r#"{"model":"a/b","models":["c/d", "e/f:\u006fnline"]}"#,
                r#"{"model":"a/b","models":["c/d", "e/f"]}"#,
            ),
        ],
    );
    expect(
        Vendor::OpenAi,
        &[(r#"{"model":"ft:gpt-4o:org:online:1"}"#, r#"{"model":"ft:gpt-4o:org:online:1"}"#)],
    );
    let allowing = Policy { allowed: &["openrouter:plugin:web"], ..STRICT };
    assert_eq!(read(Vendor::OpenRouter, r#"{"model":"a:online"}"#, &allowing), r#"{"model":"a:online"}"#);
    let denying = Policy { action: HostedAction::Refuse, ..STRICT };
    assert_eq!(read(Vendor::OpenRouter, r#"{"model":"a:online"}"#, &denying), "!openrouter:plugin:web");
}

#[test]
fn models_that_search_by_themselves_are_refused() {
    let refused = "!search_model";
    let table: &[(Vendor, &str)] = &[
        (Vendor::OpenAi, "gpt-4o-search-preview"),
        (Vendor::OpenAi, "gpt-4o-mini-search-preview-2025-03-11"),
        (Vendor::AzureOpenAi, "GPT-5-search-api"),
        (Vendor::OpenRouter, "openai/gpt-4o-mini-search-preview"),
        (Vendor::OpenRouter, "perplexity/sonar-pro:free"),
        (Vendor::Perplexity, "sonar"),
        (Vendor::Groq, "groq/compound-mini"),
        (Vendor::Groq, "compound-beta"),
        (Vendor::Custom, "sonar-deep-research"),
        (Vendor::Custom, "groq/compound"),
    ];
    for (vendor, model) in table {
        assert_eq!(read(*vendor, &format!(r#"{{"model":"{model}"}}"#), &STRICT), refused, "{model}");
        let several = format!(r#"{{"model":"m","models":["{model}"]}}"#);
        assert_eq!(read(*vendor, &several, &STRICT), refused, "{model}");
        let allowing = Policy { allowed: &["search_model"], ..STRICT };
        assert_eq!(read(*vendor, &several, &allowing), several, "{model}");
    }
    for (vendor, model) in [
        (Vendor::OpenAi, "gpt-4o"),
        (Vendor::OpenAi, "sonar"),
        (Vendor::Perplexity, "r1-1776"),
        (Vendor::Groq, "openai/gpt-oss-120b"),
        (Vendor::Custom, "research"),
    ] {
        let body = format!(r#"{{"model":"{model}"}}"#);
        assert_eq!(read(vendor, &body, &STRICT), body, "{model}");
    }
}

#[test]
fn a_search_that_is_switched_off_is_none_where_the_switch_is_known() {
    let body = r#"{"model":"sonar","disable_search":true}"#;
    expect(
        Vendor::Perplexity,
        &[(body, body), (r#"{"model":"sonar","disable_search":false}"#, "!search_model")],
    );
    expect(Vendor::Custom, &[(body, "!search_model")]);
    expect(Vendor::OpenRouter, &[(r#"{"model":"perplexity/sonar","disable_search":true}"#, "!search_model")]);
}

#[test]
fn configuration_that_is_kept_at_the_provider_is_refused() {
    expect(
        Vendor::OpenRouter,
        &[
            (r#"{"model":"m","preset":"@preset/comedian"}"#, "!preset"),
            (r#"{"model":"@preset/comedian"}"#, "!preset"),
            (r#"{"model":"a/b@PRESET/c"}"#, "!preset"),
            (r#"{"models":["a/b","@preset/c"]}"#, "!preset"),
            (r#"{"model":"a/b"}"#, r#"{"model":"a/b"}"#),
        ],
    );
}

#[test]
fn a_host_of_which_nothing_is_known_has_every_door() {
    for extension in EXTENSIONS {
        let body = format!(r#"{{"model":"m","{}":[{{"id":"x"}}]}}"#, extension.key);
        let expected = match extension.closed {
            WhenDenied::Removed | WhenDenied::RemovedBeside(..) | WhenDenied::Items(_) => {
                r#"{"model":"m"}"#.to_owned()
            }
            WhenDenied::Refused => format!("!{}", extension.key),
            WhenDenied::State => format!("!state ({})", extension.key),
        };
        assert_eq!(read(Vendor::Custom, &body, &STRICT), expected);
    }
    expect(Vendor::Custom, &[(r#"{"model":"m:online"}"#, r#"{"model":"m"}"#)]);
}

#[test]
fn keys_that_servers_read_differently_are_refused() {
    for (body, key) in [
        (r#"{"Tools":[]}"#, "tools"),
        (r#"{"web_\u017fearch_options":{}}"#, "web_search_options"),
        (r#"{"tool\u0073":1,"TOOLS":2}"#, "tools"),
    ] {
        let expected =
            format!("!the request cannot be understood: {key}: the key is written in another case");
        expect(Vendor::OpenAi, &[(body, &expected)]);
    }
    expect(Vendor::OpenAi, &[(r#"{"Xtools":[]}"#, r#"{"Xtools":[]}"#)]);
    assert!(read(Vendor::OpenAi, r#"{"model":"a","model":"b"}"#, &STRICT).contains("stands twice"));
}

#[test]
fn every_model_that_could_answer_is_said() {
    let body = r#"{"model":"a","models":["b:online","a","c"]}"#;
    let read = drafted(body, &STRICT, |editor| models(editor, Vendor::OpenRouter)).unwrap();
    assert_eq!(read.facts.model.as_deref(), Some("a"));
    assert_eq!(read.facts.models, ["a", "b", "c"]);
}

#[test]
fn rows_of_the_tables_are_in_lower_case_and_each_stands_once() {
    let mut seen = std::collections::BTreeSet::new();
    for extension in EXTENSIONS {
        assert_eq!(extension.key, extension.key.to_ascii_lowercase());
        assert!(seen.insert(extension.key), "{}", extension.key);
    }
}

#[test]
fn the_doors_of_a_vendor_are_closed_in_the_messages_that_it_takes_too() {
    let read = |vendor: Vendor, body: &str| {
        let service = Service { vendor, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
        let head =
            ModelRequestHead { service, path: "/api/v1/messages", query: None, is_subscription: false };
        let read = drafted(body, &STRICT, |editor| {
            crate::provider::adapter(Dialect::Anthropic).request(&head, editor)
        });
        outcome(body, read)
    };
    let plain = r#"{"model":"m","messages":[]}"#;
    for (body, expected) in [
        (plain, plain),
        (r#"{"model":"m","messages":[],"plugins":[{"id":"web"}]}"#, plain),
        (r#"{"model":"m:online","messages":[]}"#, plain),
        (r#"{"model":"m","messages":[],"preset":"p"}"#, "!preset"),
    ] {
        assert_eq!(read(Vendor::OpenRouter, body), expected);
    }
    let other_case = r#"{"model":"m","messages":[],"Tools":[{"type":"web_search_20250305"}]}"#;
    assert!(read(Vendor::Ollama, other_case).starts_with('!'));
    assert_eq!(read(Vendor::Anthropic, plain), plain);
}

#[test]
fn nobody_names_more_models_or_hosted_tools_than_are_looked_at() {
    let many = |count: usize, one: fn(usize) -> String| (0..count).map(one).collect::<Vec<_>>().join(",");
    let models = |count| format!(r#"{{"models":[{}]}}"#, many(count, |number| format!("\"m{number}\"")));
    assert_eq!(read(Vendor::OpenRouter, &models(256), &STRICT), models(256));
    assert!(read(Vendor::OpenRouter, &models(257), &STRICT).contains("more than 256 models"));
    let plugins = |count| format!(r#"{{"plugins":[{}]}}"#, many(count, |_| r#"{"id":"web"}"#.to_owned()));
    assert_eq!(read(Vendor::OpenRouter, &plugins(4096), &STRICT), "{}");
    assert!(read(Vendor::OpenRouter, &plugins(4097), &STRICT).contains("more than 4096 tools"));
}
