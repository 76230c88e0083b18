#!/bin/bash
# Starts a guest: start.sh [NAME]
set -eu
NAME=${1:-web1}
IMAGES="${IMAGES:-/srv/images}"
CACHE=none
if [ -n "${LAB:-}" ]; then CACHE=unsafe; fi
DRIVES=()
for disk in root data; do
    DRIVES+=(-drive "file=$IMAGES/$NAME-$disk.qcow2,if=none,id=$disk,format=qcow2,cache=$CACHE,aio=native"
        -device "virtio-blk-pci,drive=$disk,serial=${disk^^}")
done
case $(uname -m) in
x86_64) MACHINE=q35 ;;
*) MACHINE=virt ;;
esac
cat >"/run/$NAME.cfg" <<END
[memory]
  size = "$((2 * 1024))"
END
exec qemu-system-x86_64 -name "$NAME" -M "$MACHINE" -m 2G \
    -readconfig "/run/$NAME.cfg" "${DRIVES[@]}" \
    -blockdev '{"driver":"raw","node-name":"seed","file":{"driver":"file","filename":"/srv/seed.iso"}}' \
    "$@" 2>&1 | tee -a "/var/log/$NAME.log"
