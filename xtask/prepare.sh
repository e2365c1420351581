# What every script here does first: installs what is missing by name, and says where builds live. To be sourced at the
# root of the clone, by a script that has set `me` to its name.
stop() { printf '%s: %s\n' "$me" "$*" >&2; exit 1; }
command -v cargo >/dev/null || stop "cargo is missing: install Rust with rustup"
command -v go >/dev/null || stop "go is missing: install Go 1.26 or newer (the rig builds containerd and runc with it)"
[ "$(id -u)" = 0 ] || stop "must run as root: the rig makes namespaces, mounts and cgroups"

# What the rig and its tests need from Debian; on another system install the like by hand.
packages=(busybox-static gcc iproute2 libc6-dev libseccomp-dev logrotate nftables pkg-config strace tmux)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  printf '%s: installing %s\n' "$me" "${missing[*]}" >&2
  log=$(mktemp)
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 || { tail -n 20 "$log" >&2; stop "apt-get could not install: ${missing[*]}"; }
fi

# Builds live outside the clone, keyed by what they depend on, so that a fresh clone starts warm. A key without a directory becomes a link to
# the directory that was used last, in which cargo builds only what the new lock file changes. Not a rename: tests know their programs by
# absolute paths, and another clone may be building there. cargo removes nothing from a directory, so one of 30 GB gets no new links.
export OARSMAN_CACHE=${OARSMAN_CACHE:-$HOME/.cache/oarsman}
builds=$OARSMAN_CACHE/target
key=$(cat Cargo.lock rust-toolchain.toml | sha256sum | cut -c1-16)
export CARGO_TARGET_DIR=$builds/$key
mkdir -p "$builds" && find "$builds" -maxdepth 1 -xtype l -delete
by_use() { find "$builds" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %f\n' | sort -rn | cut -d' ' -f2; }
last=$(by_use | head -n 1)
if [ ! -d "$CARGO_TARGET_DIR" ] && [ -n "$last" ] && [ "$(du -s -BG "$builds/$last" | cut -dG -f1)" -lt 30 ]; then
  ln -s "$last" "$CARGO_TARGET_DIR"
fi
[ -d "$CARGO_TARGET_DIR" ] || export OARSMAN_TEST_FROM_NOTHING=1
mkdir -p "$CARGO_TARGET_DIR" && touch "$CARGO_TARGET_DIR"
# cargo tells what is fresh by time stamps, and in a shared directory those of another clone look fresh too: a clone that comes
# second gives its sources other ones. It is known by its directory and when that was made, wherever it is mounted.
clone=$(stat -c '%d:%i:%W' .)
if [ "$(cat "$CARGO_TARGET_DIR/clone" 2>/dev/null)" != "$clone" ]; then
  bash xtask/sources.sh adopt
  echo "$clone" >"$CARGO_TARGET_DIR/clone"
fi
bash xtask/sources.sh forget
# Three directories are enough: this one, the one before, and a branch's; and none that was not used for two weeks.
by_use | tail -n +4 | while read -r unused; do rm -rf "${builds:?}/$unused"; done
find "$builds" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
