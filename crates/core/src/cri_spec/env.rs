//! A container's environment: services, then what comes wholesale, then its own variables, each over the one before.

mod expand;
mod field;
mod file;
mod lookup;
mod resource;
mod services;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVar, EnvVarSource, Pod};
use oarsman_cri_types::v1::KeyValue;

pub use expand::expand;
pub(super) use field::subscript;
pub use lookup::Lookup;
pub(super) use lookup::Values;
pub(super) use resource::value as resource_value;
pub use services::service_variables;

use super::error::{ConfigError, VariableError};
use super::node_context::NodeContext;
use crate::pod::PodExt;

/// What variables are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnvContext<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The container.
    pub spec: &'a Container,
    /// The pod's addresses, the primary one first.
    pub ips: &'a [String],
    /// What else there is to refer to.
    pub lookup: &'a Lookup,
    /// The node.
    pub node: &'a NodeContext<'a>,
}

/// Names and values. A secret may be any bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Environment(BTreeMap<String, Vec<u8>>);

impl Environment {
    /// The environment of a container.
    pub(super) fn of(source: &EnvContext<'_>) -> Result<Self, ConfigError> {
        let services = source.services()?;
        let mut own = Values::new();
        for from in source.spec.env_from.iter().flatten() {
            own.extend(source.env_from_values(from)?);
        }
        for variable in source.spec.env.iter().flatten() {
            let visible = |name: &str| own.get(name).or_else(|| services.get(name));
            let value = match plain(variable) {
                Some(text) => Some(expand(text, visible)),
                None => source.value(variable)?,
            };
            value.map(|value| own.insert(variable.name.clone(), value));
        }
        Ok(Self(services.into_iter().chain(own).collect()))
    }

    /// A text of the command with the variables in it replaced.
    pub(super) fn expand_texts(
        &self,
        spec: &Container,
        texts: &[String],
    ) -> Result<Vec<String>, ConfigError> {
        let expanded = texts.iter().map(|text| {
            let bytes = expand(text, |name| self.0.get(name));
            let not_text = |_| VariableError::NotText { container: spec.name.clone() }.into();
            String::from_utf8(bytes).map_err(not_text)
        });
        expanded.collect()
    }

    /// As the runtime wants it.
    pub(super) fn into_pairs(self) -> Vec<KeyValue> {
        self.0.into_iter().map(|(key, value)| KeyValue { key, value }).collect()
    }
}

/// A value that is not empty hides any source; with neither, the variable is empty.
fn plain(variable: &EnvVar) -> Option<&str> {
    let text = variable.value.as_deref().unwrap_or_default();
    (!text.is_empty() || variable.value_from.is_none()).then_some(text)
}

impl EnvContext<'_> {
    fn services(&self) -> Result<Values, ConfigError> {
        let links = self.pod.spec().and_then(|spec| spec.enable_service_links).unwrap_or(true);
        match &self.lookup.services {
            Some(services) => {
                Ok(service_variables(services, &self.pod.full_name().namespace, links))
            }
            // A static pod may run where no API server ever sends services.
            None if self.pod.is_static() => Ok(Values::new()),
            None => Err(VariableError::ServicesUnread.into()),
        }
    }

    /// All values of a config map or secret.
    fn env_from_values(&self, from: &EnvFromSource) -> Result<Values, ConfigError> {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let values = match (&from.config_map_ref, &from.secret_ref) {
            (Some(map), _) => self.config_map(&map.name, map.optional)?,
            (None, Some(secret)) => self.secret(&secret.name, secret.optional)?,
            (None, None) => None,
        };
        let named = |(key, value): (String, Vec<u8>)| (format!("{prefix}{key}"), value);
        Ok(values.unwrap_or_default().into_iter().map(named).collect())
    }

    /// A variable's value by its source; none when the source is optional and not there.
    fn value(&self, variable: &EnvVar) -> Result<Option<Vec<u8>>, ConfigError> {
        let Some(from) = &variable.value_from else { return Ok(Some(Vec::new())) };
        if let Some(field) = &from.field_ref {
            return Ok(Some(field::value(self, &field.field_path)?.into_bytes()));
        }
        if let Some(resource) = &from.resource_field_ref {
            return Ok(Some(resource::value(self, resource)?.into_bytes()));
        }
        if let Some(file) = &from.file_key_ref {
            let value = file::value(self.lookup, &variable.name, file)?;
            return Ok(value.map(String::into_bytes));
        }
        self.key_ref_value(from)
    }

    fn key_ref_value(&self, from: &EnvVarSource) -> Result<Option<Vec<u8>>, ConfigError> {
        let (kind, name, key, optional, values) =
            match (&from.config_map_key_ref, &from.secret_key_ref) {
                (Some(map), _) => {
                    let values = self.config_map(&map.name, map.optional)?;
                    ("ConfigMap", &map.name, &map.key, map.optional, values)
                }
                (None, Some(secret)) => {
                    let values = self.secret(&secret.name, secret.optional)?;
                    ("Secret", &secret.name, &secret.key, secret.optional, values)
                }
                (None, None) => return Ok(Some(Vec::new())),
            };
        let Some(mut values) = values else { return Ok(None) };
        match values.remove(key) {
            None if optional != Some(true) => Err(self.no_key(kind, name, key)),
            value => Ok(value),
        }
    }

    fn no_key(&self, kind: &'static str, name: &str, key: &str) -> ConfigError {
        let namespace = self.pod.full_name().namespace;
        let (name, key) = (name.to_owned(), key.to_owned());
        VariableError::NoKey { key, kind, namespace, name }.into()
    }

    fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<Values>, ConfigError> {
        let found = self.lookup.config_map(&self.pod.full_name().namespace, name);
        found_or("ConfigMap", name, optional, found)
    }

    fn secret(&self, name: &str, optional: Option<bool>) -> Result<Option<Values>, ConfigError> {
        let found = self.lookup.secret(&self.pod.full_name().namespace, name);
        found_or("Secret", name, optional, found)
    }
}

fn found_or(
    kind: &'static str,
    name: &str,
    optional: Option<bool>,
    found: Option<Values>,
) -> Result<Option<Values>, ConfigError> {
    match found {
        None if optional != Some(true) => {
            Err(VariableError::NotFound { kind, name: name.to_owned() }.into())
        }
        found => Ok(found),
    }
}
