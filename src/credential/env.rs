//! A value in an environment variable of the gateway, for laptops and CI.

use zeroize::Zeroizing;

use super::fetch::{Fetch, Unavailable};

/// Holds what the variable said at the load; a process's environment does not change under it.
pub(super) struct FromEnv {
    pub(super) variable: String,
    pub(super) value: Option<Zeroizing<String>>,
}

impl Fetch for FromEnv {
    fn fetch(&self) -> Result<Zeroizing<Vec<u8>>, Unavailable> {
        let value = self.value.as_ref().ok_or(Unavailable::Unset)?;
        Ok(Zeroizing::new(value.as_bytes().to_vec()))
    }

    fn place(&self) -> String {
        format!("the environment variable {}", self.variable)
    }
}
