//! Network configurations: lists of plugins, and the older files with one plugin.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::refusal::shown;
use crate::version::CniVersion;

/// The longest configuration that is read, in bytes.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// More plugins than any network has.
const MAX_PLUGINS: usize = 64;
/// Plugins make file names of it.
const MAX_NAME: usize = 128;

/// A network: its plugins in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct CniNetwork {
    pub(crate) name: String,
    pub(crate) version: CniVersion,
    pub(crate) disable_check: bool,
    pub(crate) disable_gc: bool,
    pub(crate) plugins: Vec<CniPlugin>,
}

/// A plugin of a network, with its own fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CniPlugin {
    /// The name of its program.
    pub(crate) kind: String,
    /// What it wants to be told of a pod.
    pub(crate) capabilities: BTreeSet<String>,
    pub(crate) fields: Map<String, Value>,
}

/// What a file of the configuration directory has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParsedFile {
    /// All of a network.
    Whole(CniNetwork),
    /// A network, more plugins of which may be in files below a directory that has its name.
    WithDirectory(CniNetwork),
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no JSON object.
    #[error("it is no JSON object: {0}")]
    Syntax(String),
    /// A field is missing.
    #[error("the field {0:?} is missing")]
    Missing(&'static str),
    /// A field has another type.
    #[error("the field {field:?} has to be {expected}")]
    Type {
        /// The field.
        field: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// The name cannot be used.
    #[error(
        "the network name {0:?} may have letters, digits, dots, dashes and underscores, begins with a letter or digit, and has at most 128 characters"
    )]
    Name(String),
    /// A plugin's type is no name of a program.
    #[error("the type {0:?} of a plugin is no name of a program")]
    PluginType(String),
    /// No plugins, or too many.
    #[error("it has {0} plugins, and may have 1 to 64")]
    Plugins(usize),
    /// A version that we do not speak.
    #[error(
        "cniVersion {0:?} is not spoken here: write 1.1.0, 1.0.0, 0.4.0, 0.3.1 or 0.3.0, whichever the plugins speak"
    )]
    Version(String),
}

type Parsed<T> = Result<T, ConfigurationError>;

impl CniNetwork {
    /// Its name, under which plugins file what they lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the specification by which its plugins are called.
    pub fn version(&self) -> CniVersion {
        self.version
    }

    /// The names of its plugins' programs, in their order.
    pub fn plugin_types(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().map(|plugin| plugin.kind.as_str())
    }

    /// Whether one of its plugins wants to be told that of a pod.
    pub fn has_capability(&self, name: &str) -> bool {
        self.plugins.iter().any(|plugin| plugin.capabilities.contains(name))
    }

    /// A list of plugins, as a file with the ending `.conflist` has it, without those of its directory.
    ///
    /// # Errors
    /// When a field is missing or wrong.
    pub fn parse_list(text: &[u8]) -> Parsed<Self> {
        match parse_list(text)? {
            ParsedFile::Whole(network) | ParsedFile::WithDirectory(network) => {
                network.require_plugins()
            }
        }
    }

    /// One plugin, as a file with the ending `.conf` or `.json` has it.
    ///
    /// # Errors
    /// When a field is missing or wrong.
    pub fn parse_single(text: &[u8]) -> Parsed<Self> {
        let fields = object(text)?;
        let plugin = CniPlugin::of(fields.clone())?;
        Self::of(&fields, vec![plugin])?.require_plugins()
    }

    /// As a list that is whole in itself, to be kept for DEL.
    pub fn to_json(&self) -> Value {
        let plugins = self.plugins.iter().map(|plugin| Value::Object(plugin.fields.clone()));
        serde_json::json!({
            "cniVersion": self.version.as_str(),
            "name": self.name,
            "disableCheck": self.disable_check,
            "disableGC": self.disable_gc,
            "loadOnlyInlinedPlugins": true,
            "plugins": plugins.collect::<Vec<_>>(),
        })
    }

    fn of(fields: &Map<String, Value>, plugins: Vec<CniPlugin>) -> Parsed<Self> {
        let name = text(fields, "name")?.ok_or(ConfigurationError::Missing("name"))?;
        if !is_network_name(name) {
            return Err(ConfigurationError::Name(name.chars().take(MAX_NAME).collect()));
        }
        Ok(Self {
            name: name.to_owned(),
            version: version(fields)?,
            disable_check: switch(fields, "disableCheck")?,
            disable_gc: switch(fields, "disableGC")?,
            plugins,
        })
    }

    pub(crate) fn require_plugins(self) -> Parsed<Self> {
        match self.plugins.len() {
            1..=MAX_PLUGINS => Ok(self),
            count => Err(ConfigurationError::Plugins(count)),
        }
    }
}

impl CniPlugin {
    fn of(fields: Map<String, Value>) -> Parsed<Self> {
        let kind = text(&fields, "type")?.ok_or(ConfigurationError::Missing("type"))?.to_owned();
        if matches!(kind.as_str(), "" | "." | "..") || kind.contains(['/', '\0']) {
            return Err(ConfigurationError::PluginType(kind.chars().take(MAX_NAME).collect()));
        }
        let capabilities = capabilities(&fields)?;
        Ok(Self { kind, capabilities, fields })
    }

    /// The plugin of a file in the directory of a network.
    pub(crate) fn parse(text: &[u8]) -> Parsed<Self> {
        Self::of(object(text)?)
    }
}

/// A list of plugins. Without `plugins`, all of them are in the directory of the network.
pub(crate) fn parse_list(text: &[u8]) -> Parsed<ParsedFile> {
    let fields = object(text)?;
    let is_whole = switch(&fields, "loadOnlyInlinedPlugins")?;
    let inlined = match fields.get("plugins") {
        None if is_whole => return Err(ConfigurationError::Missing("plugins")),
        None => Vec::new(),
        Some(Value::Array(plugins)) if plugins.is_empty() => {
            return Err(ConfigurationError::Plugins(0));
        }
        Some(Value::Array(plugins)) => plugins.iter().map(inlined_plugin).collect::<Parsed<_>>()?,
        Some(_) => return Err(ConfigurationError::Type { field: "plugins", expected: "a list" }),
    };
    let network = CniNetwork::of(&fields, inlined)?;
    Ok(match is_whole {
        true => ParsedFile::Whole(network),
        false => ParsedFile::WithDirectory(network),
    })
}

fn inlined_plugin(value: &Value) -> Parsed<CniPlugin> {
    match value {
        Value::Object(fields) => CniPlugin::of(fields.clone()),
        _ => Err(ConfigurationError::Type { field: "plugins", expected: "a list of objects" }),
    }
}

fn object(text: &[u8]) -> Parsed<Map<String, Value>> {
    serde_json::from_slice(text)
        .map_err(|error| ConfigurationError::Syntax(shown(&error.to_string())))
}

/// Go's decoder takes null for a field that is not there.
fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn text<'a>(fields: &'a Map<String, Value>, name: &'static str) -> Parsed<Option<&'a str>> {
    let wrong = ConfigurationError::Type { field: name, expected: "a text" };
    field(fields, name).map(|value| value.as_str().ok_or(wrong)).transpose()
}

/// A switch may be written as a text.
fn switch(fields: &Map<String, Value>, name: &'static str) -> Parsed<bool> {
    match field(fields, name) {
        None => Ok(false),
        Some(Value::Bool(is_on)) => Ok(*is_on),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(ConfigurationError::Type { field: name, expected: "true or false" }),
    }
}

/// The newest that we speak of all that the configuration names.
fn version(fields: &Map<String, Value>) -> Parsed<CniVersion> {
    let one = text(fields, "cniVersion")?.unwrap_or_default();
    let wrong = || ConfigurationError::Type { field: "cniVersions", expected: "a list of texts" };
    let several = match field(fields, "cniVersions") {
        None => Vec::new(),
        Some(Value::Array(all)) => {
            all.iter().map(|it| it.as_str().ok_or_else(wrong)).collect::<Parsed<_>>()?
        }
        Some(_) => return Err(wrong()),
    };
    let named = several.into_iter().chain([one]);
    let newest = named.filter_map(CniVersion::parse).max();
    newest.ok_or_else(|| ConfigurationError::Version(one.chars().take(MAX_NAME).collect()))
}

fn capabilities(fields: &Map<String, Value>) -> Parsed<BTreeSet<String>> {
    let wrong = ConfigurationError::Type {
        field: "capabilities",
        expected: "an object whose values are true or false",
    };
    let Some(value) = field(fields, "capabilities") else { return Ok(BTreeSet::new()) };
    let all = value.as_object().ok_or_else(|| wrong.clone())?;
    let mut wanted = BTreeSet::new();
    for (name, value) in all {
        if value.as_bool().ok_or_else(|| wrong.clone())? {
            wanted.insert(name.clone());
        }
    }
    Ok(wanted)
}

fn is_network_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

#[cfg(test)]
mod tests;
