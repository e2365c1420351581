//! Row C22: names of profiles that lead out of the directory of profiles.

use oarsman_core::cri_spec::Lookup;
use serde_json::json;

use super::{container_config, pod};

#[test]
fn a_seccomp_profile_outside_of_its_directory_is_refused() {
    let made = |name: &str| {
        let profile = json!({ "type": "Localhost", "localhostProfile": name });
        let security = json!({ "seccompProfile": profile });
        let app = json!({ "name": "app", "securityContext": security });
        container_config(&pod(&json!({ "containers": [app] })), &Lookup::default())
    };
    for name in ["../../etc/shadow", "a/../../b", "a/..", "..", "/etc/profile.json"] {
        let told = made(name).unwrap_err().to_string();
        assert!(told.contains("seccompProfile") && told.contains(name), "{told}");
    }
    for name in ["profile.json", "a/b.json", "a..b", "..a"] {
        assert!(made(name).is_ok(), "{name}");
    }
}
