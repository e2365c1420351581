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

# Builds live outside the clone, keyed by what they depend on, so that a fresh clone starts warm.
export OARSMAN_CACHE=${OARSMAN_CACHE:-$HOME/.cache/oarsman}
key=$(cat Cargo.lock rust-toolchain.toml | sha256sum | cut -c1-16)
export CARGO_TARGET_DIR=$OARSMAN_CACHE/target/$key
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
# Three lock files' worth is enough: this one, the one before, and a branch's.
find "$OARSMAN_CACHE/target" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d' ' -f2- | xargs -r rm -rf
