//! Headers and query parameters that name another method, path or host than the request line, with the servers that heed
//! them.

use http::Uri;

use crate::wire::percent;

/// Query parameters that name another method or path, in lower case with `_` for what PHP reads as one.
const PARAMETERS: &[&str] = &[
    "_method",    // Rack, Laravel, Symfony, Spring, Express
    "rest_route", // WordPress
    "x_http_method",
    "x_http_method_override", // Google, OData
    "x_method_override",
];

/// Whether a header, in lower case, names another method, path or host. Such headers are dropped. Those about the client
/// (`x-forwarded-for`, `x-forwarded-proto`) are not among them.
pub(in crate::proxy) fn is_override(header: &str) -> bool {
    match header {
        // IIS; Symfony and Zend read them too.
        "x-original-url" | "x-rewrite-url" => true,
        // ingress-nginx, Traefik, Caddy, Envoy, Spring: what was asked for before they rewrote it.
        "x-original-uri" | "x-original-path" | "x-original-method" | "x-original-host" => true,
        "x-forwarded-uri" | "x-forwarded-url" | "x-forwarded-path" | "x-forwarded-prefix" => true,
        "x-forwarded-method" | "x-forwarded-script-name" | "x-replaced-path" => true,
        "x-envoy-original-path" | "x-envoy-original-host" => true,
        // WSGI, Azure App Service.
        "script-name" | "x-script-name" | "x-waws-unencoded-url" => true,
        // Front controllers and routers of web frameworks.
        "x-override-url" | "x-http-path-override" | "x-http-destinationurl" | "x-rewrite-uri" => true,
        "x-rewrite-path" | "x-request-uri" | "request-uri" | "base-url" | "x-base-url" => true,
        "proxy-url" | "x-proxy-url" | "x-override-method" | "x-request-method" | "method-override" => true,
        // The host, as frameworks behind a proxy read it (RFC 7239: `host=`).
        "forwarded" | "x-forwarded-host" | "x-forwarded-server" | "x-host" | "x-http-host-override" => true,
        // Google, OData, Rack, Express: `x-http-method`, `x-http-method-override`, `x-method`, `x-method-override`.
        other => other.starts_with("x-http-method") || other.starts_with("x-method"),
    }
}

/// Returns the query parameter that names another method or path.
pub(in crate::proxy) fn in_query(uri: &Uri) -> Option<&'static str> {
    let names = uri.query()?.split(['&', ';']).map(|pair| pair.split('=').next().unwrap_or_default());
    // Each parameter has a `_`, in one of its spellings; most names have none.
    let mut suspects = names.filter(|name| name.bytes().any(|byte| b"_-.+ %".contains(&byte)));
    suspects.find_map(|name| {
        let name = percent::decode(name.as_bytes());
        let name = name.split(|byte| *byte == b'[').next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).to_ascii_lowercase().replace('+', " ");
        let name = name.trim().replace(['-', '.', ' '], "_");
        PARAMETERS.iter().find(|known| **known == name).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_parameter_is_seen_and_others_are_not() {
        let seen = |query: &str| in_query(&format!("/x?{query}").parse().unwrap());
        for query in
            ["_method=DELETE", "a=1&_METHOD=PUT", "a;%5fmethod=x", "+_method=x", "_method[]=x", "_method"]
        {
            assert_eq!(seen(query), Some("_method"), "{query}");
        }
        assert_eq!(seen("X-HTTP-Method-Override=PUT"), Some("x_http_method_override"));
        assert_eq!(seen("rest%5Froute=/wp/v2/users"), Some("rest_route"));
        for query in ["method=x", "payment_method=card", "a=_method", "x=1"] {
            assert_eq!(seen(query), None, "{query}");
        }
        assert_eq!(in_query(&"/x".parse().unwrap()), None);
    }
}
