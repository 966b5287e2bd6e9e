#!/bin/sh
# Runs a command on another Debian, with its Python, its compiler and its C library:
#
#     packaging/on_debian.sh SUITE PYTHON COMMAND...
#     packaging/on_debian.sh sid python3.14 make test
#
# It needs root and debootstrap. The root folder is build/debian-SUITE; it stays for the next time.
# There, /src is a new copy of the checkout and of dist, and make's environment is /opt/PYTHON.
set -eu
suite=$1 python=$2
shift 2
root=build/debian-$suite

# In a mount namespace of its own: the mounts end with it.
if [ -z "${ON_DEBIAN:-}" ]; then
    ON_DEBIAN=1 exec unshare --mount --propagation private "$0" "$suite" "$python" "$@"
fi

if [ ! -e "$root/.made" ]; then
    rm -rf "$root"
    mkdir -p build
    debootstrap --variant=minbase --include=ca-certificates,gcc,git,libc6-dev,make \
        "$suite" "$root" >"$root.log" || { tail "$root.log"; exit 1; }
    touch "$root/.made"
fi

rm -rf "$root/src"
mkdir "$root/src"
if [ -e .git ]; then
    git ls-files --cached --others --exclude-standard -z
else  # an unpacked sdist
    find . -mindepth 1 -maxdepth 1 ! -name build ! -name dist ! -name '.venv*' -print0
fi | tar --create --null --files-from=- | tar --extract --directory="$root/src"
if [ -e dist ]; then cp -r dist "$root/src"; fi

mount -t proc proc "$root/proc"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount --bind /etc/ssl/certs "$root/etc/ssl/certs"  # a proxy's too
cp /etc/resolv.conf "$root/etc"
if [ -e /etc/pip.conf ]; then cp /etc/pip.conf "$root/etc"; fi

export PYTHON="$python"
chroot "$root" sh -eu -c '
    command -v "$PYTHON" >/dev/null && [ -e "/opt/$PYTHON" ] && exit
    apt-get update -qq -o Acquire::Check-Valid-Until=false  # a mirror of sid may be weeks behind
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$PYTHON" "$PYTHON-venv" "$PYTHON-dev" \
        >/dev/null
    mkdir -p "/opt/$PYTHON"
' 2>&1
exec chroot "$root" env --chdir=/src HOME=/root "VENV=/opt/$PYTHON" "$@"
