//! LLM providers behind the gateway: which of their endpoints are open, and what is said of each request.

mod endpoints;
mod facts;
mod limits;
mod record;
mod rules;
mod websocket;

use crate::support::setup::policy;
use crate::support::upstream::Reply;
use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

/// A gateway in front of one server that stands for these providers and answers everything.
pub(crate) struct Providers {
    pub(crate) upstream: Upstream,
    pub(crate) gateway: Gateway,
}

/// Under a policy of these destinations.
pub(crate) fn providers(hosts: &[&str], destinations: &[&str]) -> Providers {
    under(hosts, &policy(destinations))
}

/// The providers, inspected without `endpoints`.
pub(crate) fn inspected(hosts: &[&str]) -> Providers {
    providers(hosts, &[&format!("{{name: llm, hosts: [{}], action: Inspect}}", hosts.join(", "))])
}

/// Under these policies.
pub(crate) fn under(hosts: &[&str], policies: &str) -> Providers {
    with(hosts, policies, |setup| setup)
}

/// The same, changed before it starts.
pub(crate) fn with(hosts: &[&str], policies: &str, change: impl FnOnce(Setup) -> Setup) -> Providers {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream =
        Upstream::build().identity(upstreams.leaf(hosts)).script(|_| Some(Reply::of(200, "done"))).start();
    let setup = Setup::new(&upstreams).policy(policies);
    let setup = hosts.iter().fold(setup, |setup, host| setup.host(host, upstream.address()));
    Providers { upstream, gateway: change(setup).start() }
}

impl Providers {
    /// `POST api.example.com/path`
    #[track_caller]
    pub(crate) fn ask(&self, line: &str) -> Answer {
        let (method, rest) = line.split_once(' ').unwrap();
        let body: &[u8] = match method {
            "POST" if rest.contains("v1internal") => br#"{"request":{}}"#,
            "POST" => b"{}",
            _ => b"",
        };
        self.gateway.agent().request(method, &format!("https://{rest}"), &[], body)
    }

    /// Asserts that each line reaches the provider as it is.
    #[track_caller]
    pub(crate) fn assert_open(&self, lines: &[&str]) {
        for line in lines {
            let answer = self.ask(line);
            assert_eq!(answer.status, 200, "{line}: {}", answer.text());
            let seen = self.upstream.requests().pop().unwrap();
            assert_eq!(format!("{} {}{}", seen.method, seen.authority, seen.target), *line);
        }
    }

    /// Asserts that each line is refused as an endpoint that is closed, and that nothing reaches the provider.
    #[track_caller]
    pub(crate) fn assert_closed(&self, lines: &[&str]) {
        let before = self.upstream.requests().len();
        for line in lines {
            let answer = self.ask(line);
            assert!(matches!(answer.status, 400 | 403), "{line}: {}", answer.text());
            answer.assert_refused_by_provider("postern/builtin/endpoint");
        }
        assert_eq!(self.upstream.requests().len(), before);
    }
}
