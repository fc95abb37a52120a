//! Where the API server asks: `/pods/mutate`, `/pods/validate`, `/policies/validate`, over TLS.
