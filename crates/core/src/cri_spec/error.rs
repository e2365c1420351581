//! Why a pod's sandbox or container cannot be described to the runtime. Where users know a sentence from the Go
//! kubelet and search for it, it is the same one.

use crate::quantity::ParseQuantityError;
use crate::trust_bundle::TrustBundleError;

/// What in a pod, or around it, cannot be turned into a message for the runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ConfigError {
    /// A host name with its domain is longer than the kernel takes.
    #[error(
        "the host name {fqdn} is {} characters long and the kernel takes {max}: shorten spec.hostname or spec.subdomain, or unset spec.setHostnameAsFQDN",
        fqdn.len()
    )]
    HostnameTooLong {
        /// Host name and domain.
        fqdn: String,
        /// So many are allowed.
        max: usize,
    },
    /// The node's resolver settings cannot be read.
    #[error("line {line} of the node's resolv.conf names no server: correct the file")]
    ResolvConf {
        /// Counted from 1.
        line: usize,
    },
    /// A user namespace is wanted, and there is none.
    #[error("spec.hostUsers is false, and this node gives no user namespaces: unset the field")]
    NoUserNamespace,
    /// A user namespace is wanted, and a namespace of the node, which belongs to the node's own users.
    #[error("spec.hostUsers is false, which does not go with spec.{field}: unset one of them")]
    HostNamespace {
        /// `hostNetwork`, `hostPID` or `hostIPC`.
        field: &'static str,
    },
    /// The handler of a runtime class is not known.
    #[error("spec.runtimeClassName: no RuntimeClass {0:?} is known")]
    NoRuntimeClass(String),
    /// A word that the field does not know.
    #[error("{field} cannot be {value:?}")]
    Unknown {
        field: &'static str,
        /// The value of that field.
        value: String,
    },
    /// A profile on the node is wanted, but not which. Taking that for none at all was CVE-2023-2431.
    #[error("{field} has type Localhost: set its localhostProfile to the profile's name")]
    NoProfileName {
        /// `seccompProfile` or `appArmorProfile`.
        field: &'static str,
    },
    /// A profile would lie outside of the directory of profiles.
    #[error("{field} has localhostProfile {value:?}: make it a relative path without `..`")]
    ProfilePath {
        /// `seccompProfile`.
        field: &'static str,
        /// The value of that field.
        value: String,
    },
    /// Each of them would be a watch on the API server.
    #[error(
        "the pod refers to {count} ConfigMaps, Secrets and tokens in its volumes, env, envFrom and imagePullSecrets, and {limit} are allowed: put them together"
    )]
    TooManyReferences {
        /// So many there are.
        count: usize,
        /// So many are allowed.
        limit: usize,
    },
    /// All of them are held in memory.
    #[error(
        "the ConfigMaps and Secrets in the pod's volumes, env, envFrom and imagePullSecrets hold {bytes} bytes, and {limit} are allowed: {largest} is the largest, put less into it or refer to fewer"
    )]
    ObjectsTooLarge {
        /// So many there are.
        bytes: usize,
        /// So many are allowed.
        limit: usize,
        /// Kind and name of the largest.
        largest: String,
    },
    /// The user may not be root.
    #[error(transparent)]
    NonRoot(#[from] NonRootError),
    /// A variable cannot be had.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The files of a volume cannot be had.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// A claim does not give the pod a volume.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A mount cannot be made.
    #[error(transparent)]
    Mount(#[from] VolumeMountError),
    /// The container whose processes an ephemeral one should see is not there.
    #[error("unable to find target container {0}")]
    NoTarget(String),
    /// An amount of a resource that is not a number.
    #[error("{resource} {amount:?} of container {container}: {why}")]
    Amount {
        /// `cpu`, `memory` and so on.
        resource: String,
        /// As it stands in the spec.
        amount: String,
        container: String,
        /// What is wrong with it.
        why: ParseQuantityError,
    },
}

/// Why `runAsNonRoot` is violated, or may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NonRootError {
    /// The spec asks for both.
    #[error("container's runAsUser breaks non-root policy (pod: {pod:?}, container: {container})")]
    RunAsUser { pod: String, container: String },
    /// A user name may stand for any user id, root included.
    #[error(
        "container has runAsNonRoot and image has non-numeric user ({user}), cannot verify user is non-root (pod: {pod:?}, container: {container})"
    )]
    NamedUser {
        /// The user that the image is configured with.
        user: String,
        pod: String,
        container: String,
    },
    /// The image does not say otherwise.
    #[error(
        "container has runAsNonRoot and image will run as root (pod: {pod:?}, container: {container})"
    )]
    ImageIsRoot { pod: String, container: String },
    /// No user has such a number.
    #[error(
        "container has runAsNonRoot and image has an invalid user id ({user}). (Must be 1-({})) (pod: {pod:?}, container: {container})",
        i32::MAX
    )]
    InvalidUser {
        /// The user that the image is configured with.
        user: i64,
        pod: String,
        container: String,
    },
}

/// Why an environment variable has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum VariableError {
    /// The ConfigMap or Secret does not exist.
    #[error("{} {name:?} not found", kind.to_lowercase())]
    NotFound {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        name: String,
    },
    /// The object does not have the key.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        key: String,
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        namespace: String,
        name: String,
    },
    /// No list of services has been received yet.
    #[error("services have not yet been read at least once, cannot construct envvars")]
    ServicesUnread,
    /// A field that variables cannot have.
    #[error("field label not supported: {0}")]
    Field(String),
    /// A resource that variables cannot have.
    #[error("unsupported container resource : {0}")]
    Resource(String),
    /// Resources of a container that the pod does not have.
    #[error("container {0} not found")]
    NoContainer(String),
    /// A file of variables that is not there.
    #[error("variable {variable}: no file {path:?} in volume {volume:?} (valueFrom.fileKeyRef)")]
    NoFile {
        variable: String,
        /// The file, below its volume.
        path: String,
        volume: String,
    },
    /// A file of variables that cannot be understood.
    #[error(
        "couldn't parse env file {path:?} in volume {volume:?}: line {line} is not NAME='value'"
    )]
    File {
        /// The file, below its volume.
        path: String,
        volume: String,
        /// Counted from 1.
        line: usize,
    },
    /// A file of variables that lacks this one.
    #[error("environment variable key {key:?} not found in file {path:?}")]
    NoFileKey {
        key: String,
        /// The file, below its volume.
        path: String,
    },
    /// A value is larger than any process could have it.
    #[error(
        "{field} of container {container} has more than {limit} bytes once it is expanded: shorten it"
    )]
    TooLong {
        /// `env A`, `args[1]`.
        field: String,
        container: String,
        /// So many bytes are allowed.
        limit: usize,
    },
    /// The values are larger together than any process could have them.
    #[error(
        "{field} of container {container}: with it, environment, command and arguments have more than {limit} bytes: shorten them, or set spec.enableServiceLinks to false"
    )]
    ExceedsTotal {
        /// `env A`, `args[1]`.
        field: String,
        container: String,
        /// So many bytes are allowed.
        limit: usize,
    },
    /// A variable that is not text stands in a command.
    #[error(
        "the command or an argument of container {container} holds a variable that is not text"
    )]
    NotText { container: String },
}

/// Why the files of a volume could not be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PayloadError {
    /// The ConfigMap or Secret does not exist.
    #[error("{} {name:?} not found", kind.to_lowercase())]
    NotFound {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        name: String,
    },
    /// The object does not have a key that is listed.
    #[error("{}references non-existent {} key: {key}",
        if *kind == "ConfigMap" { "configmap " } else { "" },
        if *kind == "ConfigMap" { "config" } else { "secret" })]
    NoKey {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        key: String,
    },
    /// The API server gives out no token.
    #[error("failed to fetch token: {0}")]
    NoToken(String),
    /// Trust bundles are missing or damaged.
    #[error(transparent)]
    TrustBundle(TrustBundleError),
    /// The API server gives out no trust bundles.
    #[error("failed to fetch clustertrustbundles: {0}")]
    NoTrustBundles(String),
    /// There is no certificate for the pod.
    #[error("failed to get the pod certificate: {0}")]
    NoCertificate(String),
    /// The files of the pod's volumes are too large together.
    #[error(
        "with the file {path:?}, the volumes of the pod have more than {limit} bytes: list fewer or smaller items"
    )]
    TooLarge {
        /// The file, below its volume.
        path: String,
        /// So many bytes are allowed.
        limit: usize,
    },
    /// The pod's volumes have too many files.
    #[error(
        "with the file {path:?}, the volumes of the pod have more than {limit} files: list fewer items"
    )]
    TooManyFiles {
        /// The file, below its volume.
        path: String,
        /// So many are allowed.
        limit: usize,
    },
    /// Only a cluster gives it out.
    #[error("{0} comes from a cluster, and this node has none: take the source out")]
    NoCluster(&'static str),
}

/// Why a claim does not give a pod a volume. Claims and pods are named with their namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ClaimError {
    /// There is no claim of that name.
    #[error("error processing PVC {claim}: failed to fetch PVC from API server: not found")]
    NotFound { claim: String },
    /// New pods do not use it.
    #[error("error processing PVC {claim}: PVC is being deleted")]
    BeingDeleted { claim: String },
    /// It has no volume yet.
    #[error("error processing PVC {claim}: PVC is not bound")]
    NotBound { claim: String },
    /// A claim that happens to have the name of an ephemeral volume's.
    #[error("error processing PVC {claim}: PVC was not created for pod {pod} (pod is not owner)")]
    NotOwned { claim: String, pod: String },
    /// The volume that it names does not exist.
    #[error("error processing PVC {claim}: failed to fetch PV {volume} from API server: not found")]
    NoVolume {
        claim: String,
        /// The name of the volume.
        volume: String,
    },
    /// The volume was bound to another claim, which may have had the same name.
    #[error(
        "error processing PVC {claim}: PV {volume:?} is bound to the claim of UID {bound:?}, and this one's is {uid:?}"
    )]
    BoundToAnother {
        claim: String,
        /// The name of the volume.
        volume: String,
        /// The UID in the volume's claimRef.
        bound: String,
        /// The UID of the claim.
        uid: String,
    },
    /// A device is mounted, or a directory is used as a device.
    #[error("PVC {claim} has volumeMode {mode}, but is specified in {field}")]
    WrongMode {
        claim: String,
        /// `Block` or `Filesystem`.
        mode: &'static str,
        /// `volumeMounts` or `volumeDevices`.
        field: &'static str,
    },
    /// Devices are not passed into containers.
    #[error(
        "PV {volume:?} has volumeMode Block, and this agent has no block volumes: use one with volumeMode Filesystem"
    )]
    BlockVolume {
        /// The name of the volume.
        volume: String,
    },
    /// The volume is on other nodes.
    #[error(
        "Storage node affinity check failed for volume {volume:?}: no matching NodeSelectorTerms for node {node:?}"
    )]
    NodeAffinity {
        /// The name of the volume.
        volume: String,
        node: String,
    },
    /// No plugin is there for volumes of this type.
    #[error(
        "PV {volume:?} is of type {kind}, and this agent mounts local, hostPath and nfs volumes only{}",
        if kind == "csi" { ": CSI drivers are not built in yet" } else { "" }
    )]
    NoPlugin {
        /// The name of the volume.
        volume: String,
        /// The field of its spec.
        kind: String,
    },
}

/// Why a volume cannot be mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum VolumeMountError {
    /// The volume was not set up.
    #[error("cannot find volume {volume:?} to mount into container {container:?}")]
    NoVolume { volume: String, container: String },
    /// The block volume was not set up.
    #[error("cannot find volume {volume:?} to pass into container {container:?}")]
    NoDevice { volume: String, container: String },
    /// A part of a volume cannot be.
    #[error(
        "failed to prepare subPath for volumeMount {volume:?} of container {container:?}: {field} {text:?} {why}"
    )]
    SubPath {
        volume: String,
        container: String,
        /// `subPath` or `subPathExpr`.
        field: &'static str,
        /// As it stands in the spec.
        text: String,
        why: SubPathFault,
    },
    /// The part of the volume was not set up.
    #[error("cannot find the subPath of volume {volume:?} to mount into container {container:?}")]
    NoSubPath { volume: String, container: String },
    /// Read-only all the way down, yet not read-only.
    #[error("volume {0:?} requested recursive read-only mode, but it is not read-only")]
    NotReadOnly(String),
    /// What is mounted later would not be read-only.
    #[error(
        "volume {volume:?} requested recursive read-only mode, but it is not compatible with propagation {propagation:?}"
    )]
    Propagated { volume: String, propagation: String },
    /// The runtime cannot.
    #[error(
        "volume {0:?} requested recursive read-only mode, but it is not supported by the runtime"
    )]
    NoRecursiveReadOnly(String),
}

/// What is wrong with the part of a volume that a container mounts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubPathFault {
    /// Nothing is left when its variables are replaced.
    #[error("is empty once it is expanded")]
    Empty,
    /// It would not lie in the volume.
    #[error("must not be an absolute path")]
    Absolute,
    /// It could lie outside of the volume.
    #[error("must not contain '..'")]
    Backsteps,
    /// Variables that the container does not have, or that are empty.
    #[error("is missing value for {}", .0.join(", "))]
    NoValue(Vec<String>),
    /// A value of a Secret may be any bytes.
    #[error("is no UTF-8 text once it is expanded")]
    NotText,
    /// No path is that long.
    #[error("has more than {limit} bytes once it is expanded")]
    TooLong {
        /// So many are allowed.
        limit: usize,
    },
}
