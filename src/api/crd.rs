//! The CustomResourceDefinitions as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The group of the resources.
pub const GROUP: &str = "postern.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";

/// Every definition, in the order in which they are installed.
pub fn all() -> Vec<CustomResourceDefinition> {
    Vec::new()
}

/// Implements `kube::Resource` for a type with a field `metadata`.
macro_rules! resource {
    ($type:ty, $scope:ty, $kind:literal, $plural:literal) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                crate::api::crd::GROUP.into()
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                crate::api::crd::VERSION.into()
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use resource;
