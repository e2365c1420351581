//! Reads a kubeconfig: the server, its certificate authorities, and our identity.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderValue, USER_AGENT};
use jiff::Timestamp;
use kube::Config;
use kube::config::{
    AuthInfo, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};
use oarsman_core::certificates::Certificate;

use super::{CredentialsError, Result, certificate, certificate_store};

/// How we introduce ourselves: as the kubelet that we behave like, and as what we are.
#[cfg(not(target_arch = "aarch64"))]
const INTRODUCTION: &str =
    concat!("kubelet/v1.36.3 (linux/amd64) kubernetes/oarsman-", env!("CARGO_PKG_VERSION"));
#[cfg(target_arch = "aarch64")]
const INTRODUCTION: &str =
    concat!("kubelet/v1.36.3 (linux/arm64) kubernetes/oarsman-", env!("CARGO_PKG_VERSION"));

/// What is what in a kubeconfig that we write.
const CLUSTER: &str = "default-cluster";
const USER: &str = "default-auth";
const CONTEXT: &str = "default-context";

/// What a kubeconfig gives.
#[derive(Clone, Debug)]
pub(super) struct ApiAccess {
    /// The kubeconfig.
    pub(super) file: PathBuf,
    /// How kube understands it.
    pub(super) config: Config,
}

impl ApiAccess {
    /// Reads a kubeconfig; paths in it are relative to it. Files that it names are read as well, so that one that is missing is
    /// told of at once.
    ///
    /// # Errors
    /// When it, or a file that it names, cannot be used.
    pub(super) async fn read(file: &Path) -> Result<Self> {
        let wrong = |why| kubeconfig_error(file, &why);
        Self::interpret(Kubeconfig::read_from(file).map_err(wrong)?, file).await
    }

    /// What the text of a kubeconfig gives; `file` names it in errors.
    pub(super) async fn parse(text: &str, file: &Path) -> Result<Self> {
        let wrong = |why| kubeconfig_error(file, &why);
        Self::interpret(Kubeconfig::from_yaml(text).map_err(wrong)?, file).await
    }

    async fn interpret(mut kubeconfig: Kubeconfig, file: &Path) -> Result<Self> {
        let wrong = |why| kubeconfig_error(file, &why);
        choose_context(&mut kubeconfig);
        let (proxy, authority) = of_cluster(&kubeconfig);
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.map_err(wrong)?;
        if let Some(proxy) = proxy {
            let why = format!("proxy-url {proxy} is not supported; name the server itself");
            return Err(CredentialsError::Unusable { file: file.to_owned(), why });
        }
        // Variables of the environment are for people's programs. A node reaches its server by itself.
        config.proxy_url = None;
        // A bundle that is renewed is read again.
        config.root_cert_file = authority;
        config.headers.push((USER_AGENT, HeaderValue::from_static(INTRODUCTION)));
        Ok(Self { file: file.to_owned(), config })
    }

    /// The files that our own identity is read from.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let AuthInfo {
            client_certificate,
            client_certificate_data,
            client_key,
            client_key_data,
            ..
        } = &self.config.auth_info;
        let certificate = client_certificate.as_ref().filter(|_| client_certificate_data.is_none());
        let key = client_key.as_ref().filter(|_| client_key_data.is_none());
        certificate.into_iter().chain(key).map(PathBuf::from).collect()
    }

    /// Our own certificate; none when we are known by something else, or when it cannot be read.
    pub(super) fn certificate(&self) -> Option<Certificate> {
        let user = &self.config.auth_info;
        let text = match (&user.client_certificate_data, &user.client_certificate) {
            (Some(inline), _) => STANDARD.decode(inline).ok()?,
            (None, Some(file)) => fs::read(file).ok()?,
            (None, None) => return None,
        };
        certificate::read(&text).ok()
    }

    /// Why this identity cannot be used; none if it may be valid.
    pub(super) fn unusable_reason(&self, now: Timestamp) -> Option<String> {
        let missing = self.files().into_iter().find(|file| !file.exists());
        if let Some(missing) = missing {
            return Some(format!("{} is not there", missing.display()));
        }
        let certificate = self.certificate()?;
        let over = now >= certificate.not_after;
        over.then(|| format!("our client certificate has expired at {}", certificate.not_after))
    }

    /// The same server, with the client certificate and key of this file.
    pub(super) fn with_identity(mut self, file: &Path) -> Self {
        let file = Some(file.display().to_string());
        self.config.auth_info =
            AuthInfo { client_certificate: file.clone(), client_key: file, ..AuthInfo::default() };
        self
    }

    /// Writes the kubeconfig of a node: the server of another kubeconfig, and its own certificate and key in one file.
    pub(super) fn write_kubeconfig(bootstrap: &Path, target: &Path, identity: &Path) -> Result<()> {
        let wrong = |why| kubeconfig_error(bootstrap, &why);
        let mut from = Kubeconfig::read_from(bootstrap).map_err(wrong)?;
        choose_context(&mut from);
        let meant = from.current_context.clone().unwrap_or_default();
        let context = from.contexts.into_iter().find(|it| it.name == meant);
        let context = context.and_then(|it| it.context);
        let context = context.ok_or_else(|| wrong(KubeconfigError::LoadContext(meant)))?;
        let cluster = from.clusters.into_iter().find(|it| it.name == context.cluster);
        let file = identity.display().to_string();
        let user = AuthInfo {
            client_certificate: Some(file.clone()),
            client_key: Some(file),
            ..AuthInfo::default()
        };
        let made = Kubeconfig {
            kind: Some("Config".to_owned()),
            api_version: Some("v1".to_owned()),
            current_context: Some(CONTEXT.to_owned()),
            clusters: vec![NamedCluster {
                name: CLUSTER.to_owned(),
                cluster: cluster.and_then(|it| it.cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: USER.to_owned(),
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: CONTEXT.to_owned(),
                context: Some(Context {
                    cluster: CLUSTER.to_owned(),
                    user: Some(USER.to_owned()),
                    namespace: context.namespace,
                    ..Context::default()
                }),
                ..NamedContext::default()
            }],
            ..Kubeconfig::default()
        };
        let text = serde_saphyr::to_string(&made).map_err(|error| CredentialsError::Unusable {
            file: target.to_owned(),
            why: error.to_string(),
        })?;
        certificate_store::write(target, text.as_bytes())
    }
}

/// Without the text around the place, and without values: there may be a token in it.
fn kubeconfig_error(file: &Path, error: &KubeconfigError) -> CredentialsError {
    let text = error.to_string();
    let mut why = text.lines().next().unwrap_or_default().to_owned();
    let quoted = why.find(['"', '`']).zip(why.rfind(['"', '`']));
    if let (KubeconfigError::Parse(_), Some((from, to))) = (error, quoted) {
        why.replace_range(from..=to, "a value");
    }
    CredentialsError::Kubeconfig { file: file.to_owned(), why }
}

/// Without a current context the only one is used.
fn choose_context(kubeconfig: &mut Kubeconfig) {
    let is_said = kubeconfig.current_context.as_ref().is_some_and(|name| !name.is_empty());
    if let ([only], false) = (kubeconfig.contexts.as_slice(), is_said) {
        kubeconfig.current_context = Some(only.name.clone());
    }
}

/// The proxy and the file of authorities of the cluster that is meant.
fn of_cluster(kubeconfig: &Kubeconfig) -> (Option<String>, Option<PathBuf>) {
    let meant = kubeconfig.current_context.as_deref();
    let context = kubeconfig.contexts.iter().find(|it| Some(it.name.as_str()) == meant);
    let context = context.and_then(|it| it.context.as_ref());
    let of = |name: &str| kubeconfig.clusters.iter().find(|it| it.name == name)?.cluster.as_ref();
    let Some(cluster) = context.and_then(|context| of(&context.cluster)) else {
        return (None, None);
    };
    let authority = cluster.certificate_authority.as_ref();
    let authority = authority.filter(|_| cluster.certificate_authority_data.is_none());
    let proxy = cluster.proxy_url.clone().filter(|url| !url.is_empty());
    (proxy, authority.map(PathBuf::from))
}
