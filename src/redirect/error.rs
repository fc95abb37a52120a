//! Why a namespace was not, or is not, redirected: one sentence each, with the remedy.

use std::io;

use super::owners::ForeignOwner;
use super::plan::PlanError;

/// Why redirecting failed. Everything programmed before was removed, unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum RedirectError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(
        "packet filters are programmed and read with the capability NET_ADMIN: run this as root in the pod's init container with capabilities.add: [NET_ADMIN]"
    )]
    NotPermitted,
    #[error(
        "this kernel has no nf_tables: load it on the node (modprobe nf_tables), or use --backend Iptables"
    )]
    NoNftables,
    #[error(
        "this kernel's nf_tables lacks what {what} needs ({cause}): load nft_chain_nat, nft_redir, nft_ct, nft_fib_inet and nft_reject_inet on the node, or use --backend Iptables"
    )]
    Lacking { what: String, cause: io::Error },
    #[error("the kernel refuses {what}: {cause}")]
    Refused { what: String, cause: io::Error },
    #[error("the rules in force cannot be read: {0}")]
    Unreadable(io::Error),
    #[error(
        "{0}, so the gateway could be passed by: this pod cannot be shared with another sidecar that intercepts (Istio, Linkerd), so take that one out"
    )]
    Foreign(ForeignOwner),
    #[error("{0} is not there: install iptables in the image, or use --backend Nftables")]
    NoPrograms(&'static str),
    #[error("{nftables}; and iptables does not help: {iptables}")]
    Neither { nftables: Box<Self>, iptables: Box<Self> },
    #[error("{program} fails: {reason}")]
    Program { program: String, reason: String },
    #[error(
        "IPv6 would stay open, since ip6tables can neither redirect nor reject it ({0}): load ip6table_filter on the node, or switch IPv6 off in the pod"
    )]
    Ipv6Open(Box<Self>),
    #[error(
        "another `postern redirect` is at work in this network namespace, or somebody there holds its lock: wait for it to end, then run this again"
    )]
    Busy,
    #[error("{cause}; and what was programmed cannot be taken back ({removal}): remove the pod")]
    Remains { cause: Box<Self>, removal: Box<Self> },
    #[error("{}", differing(.0))]
    Differs(Vec<String>),
}

/// The first difference, and the number of others.
fn differing(differences: &[String]) -> String {
    let first = differences.first().map_or("nothing is programmed", String::as_str);
    match differences.len() {
        0 | 1 => format!("{first}; program it anew with `postern redirect`"),
        several => format!("{first} (and {} more); program it anew with `postern redirect`", several - 1),
    }
}
