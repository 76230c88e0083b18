# What vmdisk bench says of devices that hold data in ways that only a real host has: LVM, md and device-mapper.
build() {
    for number in 1 2 3; do
        truncate -s 64M "/run/disk-$number"
        quietly losetup "/dev/loop$number" "/run/disk-$number"
    done
    PV=/dev/loop1 ONE=/dev/loop2 TWO=/dev/loop3
}
# Asks for a device to be prepared, and notes which checks refused it and whether a byte of it changed.
probe() {
    row=$1
    device=$2
    sync
    before=$(sha256sum < "$device")
    said=$(vmdisk bench prepare-device "$device" --confirm-serial nothing 2>&1)
    code=$?
    line="$row refused=$((code == 2))"
    [ "$before" = "$(sha256sum < "$device")" ] && line="$line same=1" || line="$line same=0"
    for check in holders mounts signature blank exclusive serial; do
        case "$said" in
            *"marked: $check: "*) line="$line $check=1" ;;
            *"on $check: "*) line="$line $check=1" ;;
        esac
    done
    echo "$line" >> /tmp/trials
}
facts() {
    mkdir -p /srv/a
    quietly pvcreate -y "$PV"
    probe "pv-without-group" "$PV"
    quietly vgcreate -s 4m vg0 "$PV"
    probe "pv-without-volumes" "$PV"
    quietly lvcreate -y -L 16M -n thick vg0
    probe "pv-with-active-volume" "$PV"
    quietly mkfs.ext4 -q /dev/vg0/thick
    probe "volume-with-file-system" /dev/vg0/thick
    quietly mount /dev/vg0/thick /srv/a
    probe "volume-mounted" /dev/vg0/thick
    quietly umount /srv/a
    quietly lvremove -f vg0/thick
    quietly lvcreate -y --type thin-pool -L 24M -c 64k -n pool vg0
    quietly lvcreate -y -V 16M -T vg0/pool -n thin
    probe "thin-pool-with-volume" /dev/mapper/vg0-pool-tpool
    # Both ends stay blank, and nothing known is on it.
    quietly dd if=/dev/urandom of=/dev/vg0/thin bs=64k count=1 seek=128 conv=fsync
    probe "thin-volume-with-data" /dev/vg0/thin
    quietly lvremove -f vg0/pool
    quietly lvcreate -y -Zy -Wy -L 16M -n blank vg0
    dd if=/dev/zero of=/dev/vg0/blank bs=1M count=16 conv=fsync 2>/dev/null
    probe "blank-volume-with-another-serial" /dev/vg0/blank
    serial=$(cat "/sys/block/$(readlink -f /dev/vg0/blank | cut -d/ -f3)/dm/uuid")
    vmdisk bench prepare-device /dev/vg0/blank --confirm-serial "$serial" > /tmp/said 2>&1
    echo "blank-volume-confirmed code=$?" >> /tmp/trials
    quietly vgremove -f vg0
    quietly pvremove "$PV"

    quietly mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 --homehost=hostlab \
        --name=mirror "$ONE" "$TWO"
    probe "array-member" "$ONE"
    # A file system that is still making its tables would change bytes by itself.
    quietly mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/md0
    quietly mount -o ro /dev/md0 /srv/a
    probe "array-mounted" /dev/md0
    quietly umount /srv/a
    quietly mdadm --stop /dev/md0
    probe "member-of-a-stopped-array" "$ONE"
    quietly mdadm --zero-superblock "$ONE" "$TWO"

    quietly wipefs -a "$ONE"
    dd if=/dev/zero of="$ONE" bs=1M conv=fsync 2>/dev/null
    quietly dmsetup create plain --table "0 65536 linear $ONE 0"
    probe "under-a-mapping" "$ONE"
    quietly dmsetup remove plain
}
tear_down() {
    for number in 1 2 3; do
        quietly losetup -d "/dev/loop$number"
        rm -f "/run/disk-$number"
    done
}
