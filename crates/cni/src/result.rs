//! The result of ADD: interfaces and addresses, as the last plugin of a network answers it.

use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::refusal::shown;
use crate::version::CniVersion;

/// The longest answer of a plugin that is read, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// The result of ADD. All fields are kept for the next plugin, and for DEL; what we look at was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CniResult {
    fields: Map<String, Value>,
    interfaces: Vec<String>,
    addresses: Vec<ResultAddress>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResultAddress {
    address: IpAddr,
    /// Which of the interfaces has it; that of the pod, unless told.
    interface: Option<usize>,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// It is no JSON object.
    #[error("it is no JSON object: {0}")]
    Syntax(String),
    /// A field has another type, or a value that cannot be.
    #[error("{field} {found} is not {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// What it is, cut.
        found: String,
        /// What it has to be.
        expected: &'static str,
    },
}

impl CniResult {
    /// Reads the answer of a plugin that was called by that version.
    ///
    /// # Errors
    /// When it is no result.
    pub fn parse(output: &[u8], version: CniVersion) -> Result<Self, ResultError> {
        let value: Option<Map<String, Value>> = serde_json::from_slice(output)
            .map_err(|error| ResultError::Syntax(shown(&error.to_string())))?;
        // libcni takes null for an empty result.
        Self::of_fields(value.unwrap_or_default(), version)
    }

    /// Takes over a result that was kept.
    pub(crate) fn of_fields(
        mut fields: Map<String, Value>,
        version: CniVersion,
    ) -> Result<Self, ResultError> {
        check_version(&fields)?;
        let interfaces = interfaces(&fields)?;
        let addresses = addresses(&mut fields, interfaces.len(), version)?;
        fields.insert("cniVersion".to_owned(), version.as_str().into());
        Ok(Self { fields, interfaces, addresses })
    }

    /// As it is passed on to the next plugin, and kept for DEL.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The addresses of an interface of the pod, the first of each family, in the order of the result.
    pub fn pod_addresses(&self, interface: &str) -> Vec<IpAddr> {
        let mut found: Vec<IpAddr> = Vec::new();
        for it in &self.addresses {
            let is_of_pod = it.interface.is_none_or(|index| {
                self.interfaces.get(index).is_some_and(|name| name == interface)
            });
            let is_first = !found.iter().any(|has| has.is_ipv4() == it.address.is_ipv4());
            if is_of_pod && is_first {
                found.push(it.address);
            }
        }
        found
    }
}

fn wrong(field: &'static str, found: &Value, expected: &'static str) -> ResultError {
    let found = found.to_string().chars().take(64).collect();
    ResultError::Field { field, found, expected }
}

/// A plugin should answer by the version of the configuration, and some answer by another that they know. All that we speak have the same
/// fields, but for the version of an address.
fn check_version(fields: &Map<String, Value>) -> Result<(), ResultError> {
    match fields.get("cniVersion") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if text.is_empty() || CniVersion::parse(text).is_some() => Ok(()),
        Some(other) => Err(wrong("cniVersion", other, "a version from 0.3.0 to 1.1.0")),
    }
}

fn list<'a>(
    fields: &'a Map<String, Value>,
    name: &'static str,
) -> Result<&'a [Value], ResultError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(values)) => Ok(values),
        Some(other) => Err(wrong(name, other, "a list")),
    }
}

fn interfaces(fields: &Map<String, Value>) -> Result<Vec<String>, ResultError> {
    let name = |value: &Value| {
        let name = value.get("name").and_then(Value::as_str);
        name.map(str::to_owned).ok_or_else(|| wrong("interfaces", value, "an object with a name"))
    };
    list(fields, "interfaces")?.iter().map(name).collect()
}

fn addresses(
    fields: &mut Map<String, Value>,
    interfaces: usize,
    version: CniVersion,
) -> Result<Vec<ResultAddress>, ResultError> {
    list(fields, "ips")?;
    let Some(Value::Array(values)) = fields.get_mut("ips") else { return Ok(Vec::new()) };
    values.iter_mut().map(|value| address(value, interfaces, version)).collect()
}

/// Reads an address, and gives it the form of the version.
fn address(
    value: &mut Value,
    interfaces: usize,
    version: CniVersion,
) -> Result<ResultAddress, ResultError> {
    let expected = "an object with an address such as 10.0.0.2/24";
    let text = value.get("address").and_then(Value::as_str);
    let Some(address) = text.and_then(parse_cidr) else {
        return Err(wrong("ips", value, expected));
    };
    let interface = match value.get("interface") {
        None | Some(Value::Null) => None,
        Some(index) => {
            let known = index.as_u64().and_then(|index| usize::try_from(index).ok());
            let known = known.filter(|index| *index < interfaces);
            Some(known.ok_or_else(|| wrong("interface", index, "the number of an interface"))?)
        }
    };
    if let Some(fields) = value.as_object_mut() {
        let family = if address.is_ipv4() { "4" } else { "6" };
        match version.has_address_versions() {
            true => fields.insert("version".to_owned(), family.into()),
            false => fields.remove("version"),
        };
    }
    Ok(ResultAddress { address, interface })
}

fn parse_cidr(text: &str) -> Option<IpAddr> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let prefix: u8 = prefix.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (prefix <= longest).then_some(address)
}

#[cfg(test)]
mod tests;
