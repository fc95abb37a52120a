//! Models as users write them: what they become, and every mistake with its place.

use super::*;
use crate::policy::routing::Param;
use crate::policy::routing::testing::{assert_problems, audit, cluster, namespaced, policy, problems};

const PROVIDERS: &str = "  modelProviders:
    - {name: vllm, endpoint: 'https://vllm.example/v1', dialect: OpenAIChat, transforms: [reasoning, enhancetool, 'schema:generic'],
       params: {temperature: 0.3, stop: null}}
    - {name: plain, endpoint: 'https://plain.example', dialect: OpenAIChat}
    - {name: mantle, endpoint: 'https://mantle.example', dialect: Anthropic}
";

fn with(models: &[&str]) -> String {
    let models: String = models.iter().map(|model| format!("    - {{{model}}}\n")).collect();
    format!("{PROVIDERS}  models:\n{models}")
}

#[test]
fn a_model_has_what_it_says_and_else_what_its_provider_says() {
    let policy = policy(&[namespaced(
        "p",
        &with(&[
            "name: coder, provider: vllm, model: 'qwen/qwen3-coder:free', maxTokens: 16384, images: Omit, effort: Map",
            "name: Own.1_x, provider: vllm, transforms: [tooluse], params: {seed: 7}",
            "name: none, provider: vllm, transforms: [], params: {}",
            "name: bare, provider: plain",
        ]),
    )]);
    let [coder, own, none, bare] = policy.models() else { panic!("four models") };
    assert_eq!((coder.id.as_str(), &*coder.label), ("agents/p/models/coder", "coder"));
    assert_eq!((coder.model.as_deref(), coder.max_tokens), (Some("qwen/qwen3-coder:free"), Some(16384)));
    assert_eq!((coder.images, coder.effort), (Images::Omit, Effort::Map));
    assert_eq!(coder.transforms.as_deref(), Some(["reasoning", "enhancetool", "schema:generic"].as_slice()));
    let param = |name: &str, json: &str| Param { name: name.into(), json: json.into() };
    assert_eq!(coder.params, [param("stop", "null"), param("temperature", "0.3")]);
    assert!(Arc::ptr_eq(&coder.provider, &policy.model_providers()[0]));
    assert_eq!(
        (own.transforms.as_deref(), &own.params),
        (Some(["tooluse"].as_slice()), &vec![param("seed", "7")])
    );
    assert_eq!((none.transforms.as_deref(), none.params.len()), (Some([].as_slice()), 0));
    assert_eq!((bare.transforms.as_ref(), &bare.model, bare.max_tokens), (None, &None, None));
    assert_eq!((bare.images, bare.effort), (Images::Send, Effort::Drop));
}

/// What is written, where the mistake stands in it, and what is told.
type Mistake = (&'static [&'static str], &'static str, &'static str);

const MISTAKES: &[Mistake] = &[
    (&["provider: plain"], "{provider: plain}", "spec.models[0].name: is required"),
    (&["name: origin, provider: plain"], "origin", "spec.models[0].name: `origin` is where the agent"),
    (&["name: 'a b', provider: plain"], "'a b'", "spec.models[0].name: a label is 1 to 63 letters"),
    (&["name: ä, provider: plain"], "ä", "spec.models[0].name: a label is"),
    (
        &["name: a, provider: plain", "name: a, provider: mantle"],
        "a, provider: mantle",
        "spec.models[1].name: the label `a` is taken by spec.models[0]",
    ),
    (
        &["name: a"],
        "{name: a}",
        "spec.models[0].provider: is required: one of this policy's `modelProviders`",
    ),
    (
        &["name: a, provider: nobody"],
        "nobody",
        "spec.models[0].provider: \"nobody\" is none of this policy's `modelProviders`: there are mantle, plain, vllm",
    ),
    (&["name: a, provider: plain, model: ''"], "''", "spec.models[0].model: expected 1 to 256 visible"),
    (
        &["name: a, provider: plain, maxTokens: 0"],
        "0}",
        "spec.models[0].maxTokens: expected a number of at least 1",
    ),
    (
        &["name: a, provider: plain, images: Drop"],
        "Drop",
        "spec.models[0].images: unknown value \"Drop\"; expected Send or Omit",
    ),
    (
        &["name: a, provider: plain, effort: Send"],
        "Send",
        "spec.models[0].effort: unknown value \"Send\"; expected Drop or Map",
    ),
    (
        &["name: a, provider: plain, transforms: [reasoning, openia]"],
        "openia",
        "spec.models[0].transforms[1]: \"openia\": is no transform; there are reasoning, extrathinktag",
    ),
    (
        &["name: a, provider: plain, transforms: [tooluse, tooluse]"],
        "tooluse]",
        "spec.models[0].transforms[1]: `tooluse` stands in the list already",
    ),
    (
        &["name: a, provider: plain, transforms: ['schema:generic', 'schema:openai']"],
        "'schema:openai'",
        "spec.models[0].transforms[1]: `schema:generic` stands in the list already: a list has one `schema:`",
    ),
    (
        &["name: a, provider: mantle, transforms: [reasoning]"],
        "[reasoning]}",
        "spec.models[0].transforms: belongs to providers of the dialect OpenAIChat",
    ),
    (
        &["name: a, provider: plain, params: [1]"],
        "[1]",
        "spec.models[0].params: expected a mapping, found a list",
    ),
];

#[test]
fn every_mistake_has_its_place() {
    for (written, at, expected) in MISTAKES {
        assert_problems(&[(&with(written), at, expected)]);
    }
}

#[test]
fn params_have_none_of_the_fields_that_the_gateway_decides_about() {
    for name in [
        "model",
        "messages",
        "input",
        "tools",
        "tool_choice",
        "stream",
        "stream_options",
        "n",
        "functions",
        "store",
        "Model",
    ] {
        let spec = with(&[&format!("name: a, provider: plain, params: {{top_k: 1, {name}: 1}}")]);
        let found = problems(&[namespaced("p", &spec)]);
        let expected =
            format!("spec.models[0].params.{name}: `{}` is what the gateway writes", name.to_lowercase());
        assert!(found.len() == 1 && found[0].contains(&expected), "{name}: {found:?}");
    }
    let provider = PROVIDERS.replace("temperature: 0.3", "store: true");
    let found = problems(&[namespaced("p", &provider)]);
    assert!(found.len() == 1 && found[0].contains("spec.modelProviders[0].params.store: "), "{found:?}");
}

#[test]
fn params_have_at_most_4_kib_of_json() {
    let sized = |bytes: usize| {
        let text = "x".repeat(bytes - r#"{"a":""}"#.len());
        problems(&[namespaced("p", &with(&[&format!("name: a, provider: plain, params: {{a: '{text}'}}")]))])
    };
    assert_eq!(sized(4096), [""; 0]);
    assert!(sized(4097)[0].contains("spec.models[0].params: are 4097 bytes as JSON; at most 4096"));
}

#[test]
fn the_same_params_make_the_same_policy_in_any_order() {
    let revision = |params: &str| {
        let text = namespaced("p", &with(&[&format!("name: a, provider: plain, params: {params}")]));
        policy(&[text]).revision().to_owned()
    };
    assert_eq!(revision("{a: 1, b: {c: 1, d: 2}}"), revision("{b: {d: 2, c: 1}, a: 1}"));
    assert_ne!(revision("{a: 1}"), revision("{a: 2}"));
}

#[test]
fn transforms_at_a_provider_that_speaks_another_api_are_refused() {
    let provider = PROVIDERS.replace("dialect: Anthropic", "dialect: Anthropic, transforms: [reasoning]");
    let found = problems(&[namespaced("p", &provider)]);
    assert!(
        found.len() == 1 && found[0].contains("spec.modelProviders[2].transforms: belongs to"),
        "{found:?}"
    );
}

#[test]
fn a_policy_has_at_most_64_models() {
    let many = |count: usize| {
        let models: Vec<String> =
            (0..count).map(|number| format!("name: m{number}, provider: plain")).collect();
        problems(&[namespaced("p", &with(&models.iter().map(String::as_str).collect::<Vec<_>>()))])
    };
    assert_eq!(many(64), [""; 0]);
    assert!(many(65)[0].contains("spec.models: has 65 models; a policy has at most 64"));
}

#[test]
fn a_pod_has_each_label_once() {
    let spec = with(&["name: coder, provider: plain"]);
    let (base, own) = (cluster("base", &spec), namespaced("p", &spec));
    let found = problems(&[base.clone(), own.clone()]);
    let expected = "spec.models[0].name: the label `coder` is taken by -/base/models/coder; for a pod each label is one model";
    assert!(found.len() == 1 && found[0].starts_with("p.yaml:") && found[0].ends_with(expected), "{found:?}");
    let elsewhere = own.replace("spec:\n", "spec:\n  podSelector: {matchLabels: {a: b}}\n");
    assert_eq!(problems(&[base.clone(), elsewhere]), [""; 0], "it is for other pods");
    assert_eq!(problems(&[base, audit(&own)]), [""; 0], "it only records");
}

#[test]
fn an_unknown_provider_is_told_once_and_a_mistaken_one_where_it_stands() {
    let spec = "  modelProviders: [{name: a, endpoint: 'ftp://x', dialect: OpenAIChat}]\n  models: [{name: m, provider: a}]\n";
    let found = problems(&[namespaced("p", spec)]);
    assert!(found.len() == 1 && found[0].contains("spec.modelProviders[0].endpoint"), "{found:?}");
}
