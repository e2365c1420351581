//! Writes containerd's configuration.

use crate::images;
use crate::parts::Parts;
use crate::rig::RigLayout;

/// For containerd 2.4, whose configuration has version 4. Other settings are containerd's defaults.
///
/// oom_score_adj is restricted because such machines may not allow lowering it (CAP_SYS_RESOURCE is missing), and NRI is off because its socket
/// has a fixed path.
pub(super) fn containerd_2(layout: &RigLayout, parts: &Parts) -> String {
    let root = layout.root();
    let state = layout.state();
    let socket = layout.socket();
    let shim_sockets = layout.shim_sockets();
    let registries = layout.registries();
    let pause = images::PAUSE;
    let runc = parts.runc.join("runc");
    let runc_root = layout.runc_root();
    let cni_configuration = layout.cni_configuration();
    let cni = &parts.cni;
    let plugins = layout.directory().join("opt");
    let metrics = layout.metrics();
    format!(
        "version = 4
root = {root:?}
state = {state:?}
imports = []

[plugins.'io.containerd.server.v1.grpc']
address = {socket:?}

[plugins.'io.containerd.server.v1.ttrpc']
address = '{socket}.ttrpc'

[plugins.'io.containerd.server.v1.metrics']
address = '{metrics}'

[plugins.'io.containerd.shim.v1.manager']
socket_dir = {shim_sockets:?}

[plugins.'io.containerd.internal.v1.opt']
path = {plugins:?}

[plugins.'io.containerd.nri.v1.nri']
disable = true

[plugins.'io.containerd.cri.v1.images']
snapshotter = 'overlayfs'
pinned_images = {{ sandbox = '{pause}' }}
registry = {{ config_path = {registries:?} }}

[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
cdi_spec_dirs = []
# It would read statistics of every container each second, whether anybody asks or not.
stats_collect_period = '1h'

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [{cni:?}]
conf_dir = {cni_configuration:?}

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = {runc:?}
Root = {runc_root:?}
SystemdCgroup = false
",
        socket = socket.display()
    )
}

/// For Debian's containerd 1.6, whose configuration has version 2. Its shims' sockets have a fixed path, and it has neither NRI nor CDI to be
/// turned off.
pub(super) fn containerd_1_6(layout: &RigLayout, parts: &Parts) -> String {
    let root = layout.root();
    let state = layout.state();
    let socket = layout.socket();
    let registries = layout.registries();
    let pause = images::PAUSE;
    let runc = parts.runc.join("runc");
    let runc_root = layout.runc_root();
    let cni_configuration = layout.cni_configuration();
    let cni = &parts.cni;
    let plugins = layout.directory().join("opt");
    format!(
        "version = 2
root = {root:?}
state = {state:?}
imports = []

[grpc]
address = {socket:?}

[ttrpc]
address = '{socket}.ttrpc'

[plugins.'io.containerd.internal.v1.opt']
path = {plugins:?}

[plugins.'io.containerd.grpc.v1.cri']
sandbox_image = '{pause}'
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
registry = {{ config_path = {registries:?} }}

[plugins.'io.containerd.grpc.v1.cri'.cni]
bin_dir = {cni:?}
conf_dir = {cni_configuration:?}

[plugins.'io.containerd.grpc.v1.cri'.containerd]
snapshotter = 'overlayfs'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
BinaryName = {runc:?}
Root = {runc_root:?}
SystemdCgroup = false
",
        socket = socket.display()
    )
}
