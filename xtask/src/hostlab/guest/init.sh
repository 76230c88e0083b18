#!/bin/sh
# The first program of the guest: brings the host up as far as real programs need it, builds one stack after
# another, asks for the facts of each, and hands them over.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/lock /run/lvm /run/udev /run/mdadm /dev/pts
ln -s /proc/self/mounts /etc/mtab

while read -r module; do
    insmod "/lab/modules/$module.ko" || echo "LAB module $module was not loaded"
done < /lab/modules/order

/lib/systemd/systemd-udevd --daemon
udevadm trigger --type=subsystems --action=add
udevadm trigger --type=devices --action=add
udevadm settle
# Kernels look at SCSI disks in any order; they get their names anew in the order of their addresses.
for device in /sys/class/scsi_device/*; do
    address=${device##*/}
    host=${address%%:*}
    echo 1 > "$device/device/delete"
done
for target in 0 1 2 3; do
    echo "0 $target 0" > "/sys/class/scsi_host/host$host/scan"
    tries=0
    until [ -e "/sys/class/scsi_device/$host:0:$target:0/device/block" ] || [ $tries = 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
done
udevadm settle
# Since Linux 6.12 the namespaces of an NVMe drive get their names and numbers in any order as well: it is started until they
# are in theirs.
drive=$(readlink -f /sys/class/nvme/nvme0/device)
drive=${drive##*/}
in_order() {
    [ "$(cat /sys/block/nvme0n1/nsid /sys/block/nvme0n2/nsid 2>/dev/null | tr '\n' ' ')" = "1 2 " ] &&
        [ "$(cat /sys/block/nvme0n1/dev /sys/block/nvme0n2/dev 2>/dev/null | tr '\n' ' ')" = "259:0 259:1 " ]
}
tries=0
until in_order || [ $tries = 50 ]; do
    tries=$((tries + 1))
    echo "$drive" > /sys/bus/pci/drivers/nvme/unbind
    echo "$drive" > /sys/bus/pci/drivers/nvme/bind
    udevadm settle
    waits=0
    until [ -e /sys/block/nvme0n1 ] && [ -e /sys/block/nvme0n2 ] || [ $waits = 50 ]; do
        waits=$((waits + 1))
        sleep 0.1
    done
done
udevadm settle
echo "LAB up $(cut -d' ' -f1 /proc/uptime)"

port=/dev/virtio-ports/lab
[ -e "$port" ] || echo "LAB no port to hand results over"
exec 3> "$port"

# The disk with a serial number.
disk() {
    for block in /sys/block/*; do
        if [ "$(cat "$block/serial" 2>/dev/null)" = "$1" ] || [ "$(cat "$block/device/serial" 2>/dev/null | tr -d ' ')" = "$1" ]; then
            echo "/dev/${block##*/}"
            return
        fi
    done
    echo "LAB no disk $1" > /dev/console
}
A=$(disk lab-a) B=$(disk lab-b) C=$(disk lab-c) D=$(disk lab-d)
NVME_512=/dev/nvme0n1 NVME_4K=/dev/nvme0n2
SCSI_4K=$(readlink -f /dev/disk/by-id/wwn-0x5000c50015ea71bb)
SCSI_512E=$(readlink -f /dev/disk/by-id/wwn-0x5000c50015ea71aa)

# A program that need not say anything when it works.
quietly() {
    "$@" > /tmp/said 2>&1 || { echo "LAB $stack: failed: $*: $(tail -n 3 /tmp/said)" > /dev/console; exit 1; }
}
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
hand_over() { lab-inside send "$1" "$2" >&3; }
UUID_1=11111111-1111-4111-8111-111111111111
UUID_2=22222222-2222-4222-8222-222222222222
# For what two devices show at once.
UUID_SHARED=33333333-3333-4333-8333-333333333333

# Asks for the facts of paths, with everything root may know, and as anybody.
collect() {
    vmdisk facts --group core,lvm,dm,nvme "$@" > /tmp/root.json || exit 1
    as_nobody vmdisk facts "$@" > /tmp/nobody.json || exit 1
    hand_over "$stack.root.json" /tmp/root.json
    hand_over "$stack.nobody.json" /tmp/nobody.json
    lab-inside record "$stack.recorded" "$@" >&3 || exit 1
    measure "$@"
    hand_over "$stack.io" /tmp/io
}

# How often each drive was told to flush and to discard.
count_requests() {
    for block in /sys/block/vd* /sys/block/sd* /sys/block/nvme*; do
        read -r _ _ _ _ _ _ _ _ _ _ _ discards _ _ _ flushes _ < "$block/stat"
        echo "${block##*/} $flushes $discards"
    done
}

# The drives that were told of it, at least so often, between two counts.
risen() {
    names=
    while read -r drive flushes discards <&4 && read -r _ later_flushes later_discards <&5; do
        case $1 in
            flush) more=$((later_flushes - flushes)) ;;
            discard) more=$((later_discards - discards)) ;;
        esac
        [ "$more" -lt "$2" ] || names="$names,$drive"
    done 4< "$3" 5< "$4"
    echo "${names#,}"
}

# What becomes of direct writes, of ten flushes and of a discard, as QEMU makes them, of files and devices.
measure() {
    : > /tmp/io
    for path in "$@"; do
        real=$(readlink -f "$path")
        for part in "/sys/class/block/${real##*/}/${real##*/}"?*; do
            # Nothing is written to a disk whose partitions may be mounted.
            [ ! -e "$part" ] || continue 2
        done
        if [ -b "$path" ]; then direct="open=0 pages=1 cached=0"; else direct=$(lab-inside direct "${path%/*}"); fi
        sync
        udevadm settle
        count_requests > /tmp/before
        writes=0
        while [ $writes -lt 10 ]; do
            dd if=/dev/zero of="$path" bs=64k count=1 seek=$((128 + writes)) oflag=direct conv=notrunc,fdatasync 2>/dev/null
            writes=$((writes + 1))
        done
        count_requests > /tmp/flushed
        if [ -b "$path" ]; then
            blkdiscard -f -o 8388608 -l 8388608 "$path" 2>/dev/null
        else
            fallocate -p -o 8388608 -l 8388608 "$path"
        fi
        code=$?
        count_requests > /tmp/discarded
        echo "$path $direct flush=$(risen flush 10 /tmp/before /tmp/flushed) discard=$(risen discard 1 /tmp/flushed /tmp/discarded) code=$code" >> /tmp/io
    done
}

# Runs a trial of ours and keeps what it found.
trial() {
    name=$1
    shift
    found=$(lab-inside "$@") || exit 1
    echo "$name $found" >> /tmp/trials
}

for stack in $(cat /lab/stacks/order); do
    (
        . "/lab/stacks/$stack.sh"
        build
        udevadm settle
        rm -f /tmp/trials
        facts
        [ ! -e /tmp/trials ] || hand_over "$stack.trials" /tmp/trials
        tear_down
    )
    [ $? = 0 ] || echo "LAB failed $stack"
    echo "LAB done $stack $(cut -d' ' -f1 /proc/uptime)"
    # What a stack that failed left mounted must not be in the way of the next.
    while read -r _ place _; do
        case "$place" in /srv/*) umount -l "$place" ;; esac
    done < /proc/mounts
    udevadm settle
done
exec 3>&-
sync
echo "LAB end $(cut -d' ' -f1 /proc/uptime)"
# A line may still be on its way out when the machine is gone.
sleep 1
# Reset is the end: QEMU runs with -no-reboot.
echo b > /proc/sysrq-trigger
