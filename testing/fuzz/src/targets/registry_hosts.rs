//! `hosts.toml`, by which administrators name mirrors, authorities and headers, and URLs of hosts.

use oarsman_registry::fuzz_hosts_file;

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "registry-hosts", max_len: 2048, run: fuzz_hosts_file, seeds };

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "server = \"https://registry-1.docker.io\"\n[host.\"https://mirror:5000/path\"]\n  capabilities = [\"pull\", \"resolve\"]\n  skip_verify = true\n  override_path = true\n  [host.\"https://mirror:5000/path\".header]\n    x = [\"1\", \"2\"]\n    y = \"3\"\n",
        "capabilities = [\"push\"]\n[host.\"http://127.0.0.1:5000\"]\n  ca = [\"/a\", \"b\"]\n  client = [[\"/c\", \"/k\"]]\n  dial_timeout = \"1s\"\n",
        "https://user:password@r.example/v2/",
        "localhost:5000",
        "[::1]:443/a/v2",
    ])
}
