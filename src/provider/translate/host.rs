//! What is known of a model's server by its host alone.

use super::Transforms;
use crate::call::Vendor;
use crate::name::host::DnsName;
use crate::provider::surface;

/// The transforms of models at a host, where a policy names none; `None` is an address.
pub fn default_transforms(host: Option<&DnsName>) -> Transforms {
    let vendor = host.and_then(surface::surface).map_or(Vendor::Custom, surface::Surface::vendor);
    Transforms::of_vendor(vendor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::translate::Transform;

    fn words(host: &str) -> Vec<&'static str> {
        default_transforms(DnsName::parse(host).ok().as_ref()).iter().map(Transform::as_str).collect()
    }

    #[test]
    fn known_hosts_have_transforms_of_their_own() {
        assert_eq!(words("api.openai.com"), ["schema:openai"]);
        assert_eq!(words("mine.openai.azure.com"), ["schema:openai"]);
        assert_eq!(words("generativelanguage.googleapis.com"), ["gemini", "schema:gemini"]);
        assert_eq!(words("openrouter.ai"), ["reasoning", "openrouter", "schema:generic"]);
        assert_eq!(words("api.groq.com"), ["reasoning", "groq", "schema:generic"]);
        assert_eq!(words("api.mistral.ai"), ["reasoning", "mistral", "schema:generic"]);
        for host in ["vllm.models.svc.cluster.local", "api.deepseek.com", "10.0.0.1"] {
            assert_eq!(words(host), ["reasoning", "schema:generic"], "{host}");
        }
    }
}
