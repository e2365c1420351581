//! A container's environment: services, then what comes wholesale, then its own variables, each over the one before.

mod expand;
mod field;
mod file;
mod limits;
mod lookup;
mod object_data;
mod resource;
mod services;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVar, EnvVarSource, Pod};
use oarsman_cri_types::v1::KeyValue;

pub use expand::expand;
pub(super) use field::subscript;
pub use file::{EnvFile, env_files};
pub use lookup::Lookup;
pub(super) use lookup::Values;
pub(super) use object_data::{Entries, ObjectData};
pub(super) use resource::value as resource_value;
pub use services::service_variables;

use super::error::{ConfigError, SubPathFault, VariableError};
use super::node_context::NodeContext;
use crate::pod::PodExt;
use crate::references::ObjectKind;
use limits::{Entry, Field, LONGEST_VALUE, ProcessLimits};

/// No path of the kernel is longer, in bytes.
const LONGEST_PATH: usize = 4096;

/// What variables are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnvContext<'a> {
    pub pod: &'a Pod,
    pub spec: &'a Container,
    /// The pod's addresses, the primary one first.
    pub ips: &'a [String],
    /// What else there is to refer to.
    pub lookup: &'a Lookup,
    pub node: &'a NodeContext<'a>,
}

/// Names and values. A secret may be any bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Environment {
    values: BTreeMap<String, Vec<u8>>,
    limits: ProcessLimits,
}

impl Environment {
    /// The environment of a container.
    pub(super) fn of(source: &EnvContext<'_>) -> Result<Self, ConfigError> {
        let mut made = Self::default();
        for (name, value) in source.services()? {
            made.insert(&source.field("services", Entry::Name(&name)), &name, value)?;
        }
        for from in source.spec.env_from.iter().flatten() {
            let prefix = from.prefix.as_deref().unwrap_or_default();
            for (key, value) in source.env_from_values(from)? {
                let name = format!("{prefix}{key}");
                let field = source.field("envFrom", Entry::Name(&name));
                field.check(value.len())?;
                made.insert(&field, &name, value.to_vec())?;
            }
        }
        for variable in source.spec.env.iter().flatten() {
            let field = source.field("env", Entry::Name(&variable.name));
            let value = match plain(variable) {
                Some(text) => Some(made.expand(&field, text)?),
                None => source.value(variable)?,
            };
            if let Some(value) = value {
                made.insert(&field, &variable.name, value)?;
            }
        }
        Ok(made)
    }

    /// The texts of the command, or the arguments, with the variables in them replaced.
    pub(super) fn expand_texts(
        &mut self,
        spec: &Container,
        list: &'static str,
        texts: &[String],
    ) -> Result<Vec<String>, ConfigError> {
        let mut expanded = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let field = Field { container: &spec.name, list, entry: Entry::Index(index) };
            let bytes = self.expand(&field, text)?;
            self.limits.take(&field, bytes.len())?;
            let not_text = |_| VariableError::NotText { container: spec.name.clone() };
            expanded.push(String::from_utf8(bytes).map_err(not_text)?);
        }
        Ok(expanded)
    }

    /// The path that a text with variables stands for. A variable that is not there or is empty would lead to another part of the
    /// volume than is meant.
    pub(super) fn expand_path(&self, text: &str) -> Result<String, SubPathFault> {
        let without_value = RefCell::new(BTreeSet::new());
        let visible = |name: &str| {
            let value = self.values.get(name).filter(|value| !value.is_empty());
            if value.is_none() {
                without_value.borrow_mut().insert(name.to_owned());
            }
            value
        };
        let expanded = expand(text, LONGEST_PATH, visible);
        match without_value.into_inner() {
            names if !names.is_empty() => Err(SubPathFault::NoValue(names.into_iter().collect())),
            _ => {
                let bytes = expanded.ok_or(SubPathFault::TooLong { limit: LONGEST_PATH })?;
                String::from_utf8(bytes).map_err(|_| SubPathFault::NotText)
            }
        }
    }

    /// As the runtime wants it.
    pub(super) fn into_pairs(self) -> Vec<KeyValue> {
        self.values.into_iter().map(|(key, value)| KeyValue { key, value }).collect()
    }

    fn expand(&self, field: &Field<'_>, text: &str) -> Result<Vec<u8>, ConfigError> {
        let expanded = expand(text, LONGEST_VALUE, |name| self.values.get(name));
        expanded.ok_or_else(|| field.too_long())
    }

    fn insert(&mut self, field: &Field<'_>, name: &str, value: Vec<u8>) -> Result<(), ConfigError> {
        field.check(value.len())?;
        self.limits.take(field, name.len() + value.len())?;
        if let Some(before) = self.values.insert(name.to_owned(), value) {
            self.limits.give_back(name.len() + before.len());
        }
        Ok(())
    }
}

/// A value that is not empty hides any source; with neither, the variable is empty.
fn plain(variable: &EnvVar) -> Option<&str> {
    let text = variable.value.as_deref().unwrap_or_default();
    (!text.is_empty() || variable.value_from.is_none()).then_some(text)
}

impl<'a> EnvContext<'a> {
    fn field<'b>(&'b self, list: &'static str, entry: Entry<'b>) -> Field<'b> {
        Field { container: &self.spec.name, list, entry }
    }

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
    fn env_from_values(&self, from: &EnvFromSource) -> Result<Entries<'a>, ConfigError> {
        let object = match (&from.config_map_ref, &from.secret_ref) {
            (Some(map), _) => self.object(ObjectKind::ConfigMap, &map.name, map.optional)?,
            (None, Some(secret)) => {
                self.object(ObjectKind::Secret, &secret.name, secret.optional)?
            }
            (None, None) => None,
        };
        Ok(object.map(ObjectData::for_variables).unwrap_or_default())
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
        let (kind, name, key, optional) = match (&from.config_map_key_ref, &from.secret_key_ref) {
            (Some(map), _) => (ObjectKind::ConfigMap, &map.name, &map.key, map.optional),
            (None, Some(secret)) => {
                (ObjectKind::Secret, &secret.name, &secret.key, secret.optional)
            }
            (None, None) => return Ok(Some(Vec::new())),
        };
        let Some(object) = self.object(kind, name, optional)? else { return Ok(None) };
        match object.for_variable(key) {
            None if optional != Some(true) => Err(self.no_key(kind.as_str(), name, key)),
            value => Ok(value.map(<[u8]>::to_vec)),
        }
    }

    fn no_key(&self, kind: &'static str, name: &str, key: &str) -> ConfigError {
        let namespace = self.pod.full_name().namespace;
        let (name, key) = (name.to_owned(), key.to_owned());
        VariableError::NoKey { key, kind, namespace, name }.into()
    }

    fn object(
        &self,
        kind: ObjectKind,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<ObjectData<'a>>, ConfigError> {
        match self.lookup.object(kind, &self.pod.full_name().namespace, name) {
            None if optional != Some(true) => {
                let (kind, name) = (kind.as_str(), name.to_owned());
                Err(VariableError::NotFound { kind, name }.into())
            }
            found => Ok(found),
        }
    }
}
