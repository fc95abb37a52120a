//! Reads which image, resources and log level namespaces and pods choose by annotation, within the bounds of the settings.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use super::shape::{annotation, edit_object, ours, put, shortened, text};
use crate::operator::amount::Amount;
use crate::operator::settings::{Bounds, Settings};
use crate::pod;

/// Annotations of a namespace.
pub type Annotations = BTreeMap<String, String>;

/// The choices; those that were not made come from the settings.
#[derive(Debug)]
pub(super) struct Choices {
    /// Of both containers.
    pub(super) image: String,
    pub(super) gateway: ResourceRequirements,
    pub(super) redirect: ResourceRequirements,
    /// The chosen log level, of the pod or else of its namespace.
    log_level: Option<String>,
}

/// One of Postern's containers: the keys of its annotations, and its settings.
struct Container<'a> {
    requests: &'static str,
    limits: &'static str,
    given: &'a ResourceRequirements,
    bounds: &'a Bounds,
}

/// An annotation that is not empty, and its path.
struct AnnotationText<'a> {
    place: String,
    text: &'a str,
}

/// Amounts as they are written, by resource.
type Amounts = BTreeMap<String, String>;

impl Choices {
    /// Reads the annotations of a pod and of its namespace.
    ///
    /// # Errors
    /// Sentences that say which annotation asks for something that is not allowed.
    pub(super) fn asked(
        pod: &Value,
        namespace: &Annotations,
        settings: &Settings,
    ) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let [gateway, redirect] = containers(settings).map(|container| {
            container.resources(pod, namespace).unwrap_or_else(|more| {
                problems.extend(more);
                ResourceRequirements::default()
            })
        });
        let image = image(pod, namespace, settings).unwrap_or_else(|problem| {
            problems.push(problem);
            String::new()
        });
        let log_level = written(pod, Some(namespace), pod::LOG_LEVEL);
        problems.extend(log_level.iter().filter_map(|written| refuse_level(written, settings)));
        if !problems.is_empty() {
            return Err(problems);
        }
        let log_level = log_level.last().map(|written| written.text.to_owned());
        Ok(Self { image, gateway, redirect, log_level })
    }

    /// The choices that a pod was given that is about to be stored: its image, if the settings list it. Resources are
    /// not compared, since a LimitRange and autoscalers set them too.
    ///
    /// # Errors
    /// Fails if the settings do not list the log level.
    pub(super) fn stored(pod: &Value, settings: &Settings) -> Result<Self, Vec<String>> {
        let image = ours(pod, pod::GATEWAY_CONTAINER).map_or("", |gateway| text(gateway, "image"));
        let is_former = settings.gateway.former_images.iter().any(|former| former == image);
        let image = if is_former || may_be_chosen(image, settings) { image } else { &settings.gateway.image };
        let problems = refuse_log_level(pod, settings);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            image: image.to_owned(),
            gateway: settings.gateway.resources.clone(),
            redirect: settings.redirect.resources.clone(),
            log_level: None,
        })
    }

    /// Writes the log level into the pod's annotation, from which the gateway reads it.
    pub(super) fn annotate(&self, pod: &mut Value) {
        let Some(level) = &self.log_level else { return };
        edit_object(pod, "metadata", |metadata| {
            edit_object(metadata, "annotations", |annotations| {
                put(annotations, pod::LOG_LEVEL, Value::from(level.as_str()));
            });
        });
    }
}

/// Refuses a log level in the pod's own annotation that the settings do not list.
pub(super) fn refuse_log_level(pod: &Value, settings: &Settings) -> Vec<String> {
    let written = written(pod, None, pod::LOG_LEVEL);
    written.iter().filter_map(|written| refuse_level(written, settings)).collect()
}

fn refuse_level(written: &AnnotationText<'_>, settings: &Settings) -> Option<String> {
    let levels = &settings.injection.log_levels;
    (!levels.iter().any(|level| level == written.text))
        .then(|| format!("{}: {:?} is none of {}", written.place, shortened(written.text), levels.join(", ")))
}

/// The namespace's annotation, then the pod's, which wins.
fn written<'a>(pod: &'a Value, namespace: Option<&'a Annotations>, key: &str) -> Vec<AnnotationText<'a>> {
    let of_namespace = namespace.and_then(|annotations| annotations.get(key)).map_or("", String::as_str);
    let places = [("the namespace's ", of_namespace), ("", annotation(pod, key))];
    let given = places.into_iter().filter(|(_, text)| !text.is_empty());
    given
        .map(|(whose, text)| AnnotationText { place: format!("{whose}metadata.annotations[{key}]"), text })
        .collect()
}

fn image(pod: &Value, namespace: &Annotations, settings: &Settings) -> Result<String, String> {
    let written = written(pod, Some(namespace), pod::GATEWAY_IMAGE);
    let Some(asked) = written.last() else { return Ok(settings.gateway.image.clone()) };
    if may_be_chosen(asked.text, settings) {
        return Ok(asked.text.to_owned());
    }
    let image = shortened(asked.text);
    Err(format!(
        "{}: {image:?} is no image that the chart lists for this: have it listed in gateway.canaryImages, or leave it out",
        asked.place
    ))
}

/// Whether an annotation may name this image. Former images may not be chosen: a pod's author could undo what was fixed
/// since.
fn may_be_chosen(image: &str, settings: &Settings) -> bool {
    let gateway = &settings.gateway;
    image == gateway.image || gateway.canary_images.iter().any(|listed| listed == image)
}

fn containers(settings: &Settings) -> [Container<'_>; 2] {
    let Settings { gateway, redirect, .. } = settings;
    [
        Container {
            requests: pod::GATEWAY_REQUESTS,
            limits: pod::GATEWAY_LIMITS,
            given: &gateway.resources,
            bounds: &gateway.resource_bounds,
        },
        Container {
            requests: pod::REDIRECT_REQUESTS,
            limits: pod::REDIRECT_LIMITS,
            given: &redirect.resources,
            bounds: &redirect.resource_bounds,
        },
    ]
}

impl Container<'_> {
    /// The container's requests and limits. An annotation wins over the settings; the other of the two follows, so that
    /// no request is above its limit.
    fn resources(&self, pod: &Value, namespace: &Annotations) -> Result<ResourceRequirements, Vec<String>> {
        let mut problems = Vec::new();
        let [requests, limits] = [self.requests, self.limits].map(|key| {
            let mut chosen = Amounts::new();
            for written in written(pod, Some(namespace), key) {
                match self.amounts(&written) {
                    Ok(amounts) => chosen.extend(amounts),
                    Err(more) => problems.extend(more),
                }
            }
            chosen
        });
        for (name, request) in &requests {
            if limits.get(name).is_some_and(|limit| is_less(limit, request)) {
                problems.push(format!(
                    "metadata.annotations[{}]: {name}={request} is more than the limit of {}: raise the limit, or lower \
                     the request",
                    self.requests, limits[name]
                ));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut resources = self.given.clone();
        set(&mut resources.requests, &requests);
        set(&mut resources.limits, &limits);
        follow(resources.requests.as_mut(), resources.limits.as_mut(), &requests);
        Ok(resources)
    }

    /// Reads `cpu=20m,memory=64Mi`.
    fn amounts(&self, written: &AnnotationText<'_>) -> Result<Amounts, Vec<String>> {
        let (mut amounts, mut problems) = (Amounts::new(), Vec::new());
        for entry in written.text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            match self.amount(entry) {
                Ok((name, _)) if amounts.contains_key(name) => {
                    problems.push(format!("{name} is there twice"))
                }
                Ok((name, amount)) => drop(amounts.insert(name.to_owned(), amount.to_owned())),
                Err(problem) => problems.push(problem),
            }
            // One problem is enough: an annotation may be long.
            if !problems.is_empty() {
                break;
            }
        }
        if problems.is_empty() {
            return Ok(amounts);
        }
        Err(problems.into_iter().map(|problem| format!("{}: {problem}", written.place)).collect())
    }

    fn amount<'e>(&self, entry: &'e str) -> Result<(&'e str, &'e str), String> {
        let shown = shortened(entry);
        let Some((name, text)) = entry.split_once('=') else {
            return Err(format!("{shown:?} is no RESOURCE=AMOUNT, as in cpu=20m,memory=64Mi"));
        };
        let (name, text) = (name.trim(), text.trim());
        let Some(most) = self.bounds.most.get(name) else {
            let named: Vec<&str> = self.bounds.most.keys().map(String::as_str).collect();
            return Err(format!(
                "{shown:?} names no resource that may be chosen: those are {}",
                named.join(", ")
            ));
        };
        let amount = Amount::parse(text).map_err(|error| format!("{shown:?}: {error}"))?;
        if Amount::parse(most).is_ok_and(|most| amount > most) {
            return Err(format!("{shown:?} is more than the chart's bound, {most}"));
        }
        let least = self.bounds.least.get(name);
        if let Some(least) = least.filter(|least| Amount::parse(least).is_ok_and(|least| amount < least)) {
            return Err(format!("{shown:?} is less than the chart's bound, {least}"));
        }
        Ok((name, text))
    }
}

fn set(part: &mut Option<BTreeMap<String, Quantity>>, amounts: &Amounts) {
    if amounts.is_empty() {
        return;
    }
    let part = part.get_or_insert_with(BTreeMap::new);
    part.extend(amounts.iter().map(|(name, amount)| (name.clone(), Quantity(amount.clone()))));
}

/// Makes a request that is above its limit equal to it. The one that was `asked` for stays, the other follows.
fn follow(
    requests: Option<&mut BTreeMap<String, Quantity>>,
    limits: Option<&mut BTreeMap<String, Quantity>>,
    asked: &Amounts,
) {
    let (Some(requests), Some(limits)) = (requests, limits) else { return };
    for (name, request) in requests {
        let Some(limit) = limits.get_mut(name) else { continue };
        if is_less(&limit.0, &request.0) {
            if asked.contains_key(name) {
                limit.0.clone_from(&request.0);
            } else {
                request.0.clone_from(&limit.0);
            }
        }
    }
}

fn is_less(amount: &str, than: &str) -> bool {
    Amount::parse(amount).is_ok_and(|amount| Amount::parse(than).is_ok_and(|than| amount < than))
}
