#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Runs the README's two commands on a fresh Debian: makes a root with debootstrap, clones this
# checkout's HEAD into it and runs `make run` and `make test` there. Needs root and debootstrap.
#
# Usage: tools/fresh_root.sh bookworm|trixie [COMMAND]
# COMMAND is a shell line to run in the clone instead. The root is kept in $TOWPATH_ROOTS
# (default: /var/tmp/towpath_roots); remove it to begin from nothing. $TOWPATH_MIRROR names a
# Debian mirror. If $TOWPATH_CCACHE names a folder, ccache keeps what it compiles there. The files
# in $TOWPATH_FILES are copied into the clone's dist/.
set -euo pipefail
suite=${1:-}
command=${2:-"make run && make test"}
case "$suite" in
  bookworm | trixie) ;;
  *)
    echo "usage: tools/fresh_root.sh bookworm|trixie [COMMAND]" >&2
    exit 2
    ;;
esac
[ "$(id -u)" = 0 ] || { echo "fresh_root: making a root needs the rights of root" >&2; exit 1; }
command -v debootstrap >/dev/null ||
  { echo "fresh_root: needs debootstrap; apt-get install debootstrap" >&2; exit 1; }

checkout=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
root=${TOWPATH_ROOTS:-/var/tmp/towpath_roots}/$suite
if [ ! -e "$root/etc/debian_version" ]; then
  echo "making a root of $suite in $root"
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$root" \
    "${TOWPATH_MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
    { tail -5 "$root.log" >&2; exit 1; }
fi

# The host's way to the package registries: name servers, certificates, pip's settings.
for file in /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
  if [ -e "$file" ]; then
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
  fi
done
rm -rf "$root/towpath"
git clone --quiet --no-hardlinks "$checkout" "$root/towpath"
if [ -n "${TOWPATH_FILES:-}" ]; then
  mkdir -p "$root/towpath/dist"
  # shellcheck disable=SC2086  # several names
  cp $TOWPATH_FILES "$root/towpath/dist/"
fi
mkdir -p "$root/root/.cache/ccache"

# Mounts and processes are those of namespaces of their own and end with the command.
TOWPATH_COMMAND=$command exec unshare --mount --pid --fork --kill-child bash -c '
  mount -t proc proc "$0/proc"
  mount --rbind /dev "$0/dev"
  mount -t tmpfs tmpfs "$0/tmp"
  if [ -n "${TOWPATH_CCACHE:-}" ]; then mount --bind "$TOWPATH_CCACHE" "$0/root/.cache/ccache"; fi
  exec env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 CI="${CI:-}" JOBS="${JOBS:-$(nproc)}" \
    chroot "$0" bash -c "cd /towpath && $TOWPATH_COMMAND"' "$root"
