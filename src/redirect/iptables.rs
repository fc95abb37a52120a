//! A plan in the syntax of `iptables-restore` and `ip6tables-restore`, and the comparison with what their `-save` prints.

/// What the names of our chains begin with.
pub const CHAIN_PREFIX: &str = "POSTERN_";
