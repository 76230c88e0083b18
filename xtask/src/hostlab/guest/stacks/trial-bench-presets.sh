# The presets that need root, devices or arrays: in short settings, with everything as it was afterwards.
build() {
    quietly pvcreate -y "$A"
    quietly vgcreate -s 4m vg0 "$A"
    # Both mirrors are on the same pair of disks.
    printf 'label: gpt\nsize=320M\nsize=186M\n' > /tmp/table
    quietly /sbin/sfdisk -q "$C" < /tmp/table
    quietly /sbin/sfdisk -q "$D" < /tmp/table
    udevadm settle
    quietly mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 --homehost=hostlab \
        --name=mirror "${C}1" "${D}1"
    quietly mkfs.xfs -q -f /dev/md0
    quietly mkfs.btrfs -q -f -d raid1 -m raid1 "${C}2" "${D}2"
    mkdir -p /srv/xfs-on-md /srv/btrfs-raid1
    quietly mount /dev/md0 /srv/xfs-on-md
    quietly mount "${C}2" /srv/btrfs-raid1
    DEVICE=/dev/disk/by-id/virtio-lab-b
    # Volumes that are there before and after a run, on the disk of the thin pools.
    quietly lvcreate -y -L 200M -n given-volume vg0
    quietly lvcreate -y -L 320M -n given-files vg0
    quietly mkfs.xfs -q -f /dev/vg0/given-files
    mkdir -p /srv/xfs-on-lv
    quietly mount /dev/vg0/given-files /srv/xfs-on-lv
    VOLUME=/dev/disk/by-id/dm-name-vg0-given--volume
    [ -e "$VOLUME" ] || ln -s "$(readlink -f /dev/vg0/given-volume)" "$VOLUME"
    cat > /run/volumes.yaml <<'PLAN'
version: 1
name: volumes
question: Is a logical volume faster than a thin volume and than a file on a logical volume?
size: 96M
phases: [first-touch, steady]
workloads: [4k-random-write-qd32, 4k-random-read-qd32, 1m-sequential-write-qd4]
fixed: {engine: host-fio}
configurations:
- {name: file}
- {name: volume, backend: device}
- {name: thin-volume, backend: thin, chunk: 64K}
baseline: {name: file}
PLAN
}
# Runs a preset or a plan, and notes how it ended and what of it is still there.
measure() {
    name=$1
    shift
    (cd /run && vmdisk bench run "$@" --seconds 0.4 --rounds "$(cat /lab/rounds)" --no-warm-up --noisy --seed 2026 --time-budget 1h --output "/run/out-$name") > /tmp/said 2>&1
    code=$?
    left=0
    for volume in $(lvs --noheadings -o lv_name vg0 2>/dev/null); do
        case "$volume" in
            given-*) ;;
            *) left=1 ;;
        esac
    done
    [ ! -e /run/vmdisk-bench ] || left=1
    case "$(cat "/sys/block/$(readlink -f "$DEVICE" | cut -d/ -f3)/queue/scheduler")" in
        "$SCHEDULER") ;;
        *) left=1 ;;
    esac
    for stray in /run/vmdisk-bench-* /srv/*/vmdisk-bench-*; do
        [ ! -e "$stray" ] || left=1
    done
    cells=0
    if [ -e "/run/out-$name/samples.csv" ]; then
        while read -r _; do cells=$((cells + 1)); done < "/run/out-$name/samples.csv"
        cells=$((cells - 1))
        hand_over "$stack.$name.md" "/run/out-$name/report.md"
        hand_over "measured.$name.json" "/run/out-$name/result.json"
    else
        hand_over "$stack.$name.md" /tmp/said
    fi
    echo "$name code=$code left=$left samples=$cells" >> /tmp/trials
}
facts() {
    SCHEDULER=$(cat "/sys/block/$(readlink -f "$DEVICE" | cut -d/ -f3)/queue/scheduler")
    serial=$(cat "/sys/block/$(readlink -f "$DEVICE" | cut -d/ -f3)/serial")
    vmdisk bench prepare-device "$DEVICE" --confirm-serial "$serial" > /tmp/said 2>&1
    echo "prepare-device code=$?" >> /tmp/trials
    measure schedulers schedulers --destroy-data-on "$DEVICE" --confirm-serial "$serial" --size 32M
    measure thin-chunk thin-chunk --group vg0 --size 24M --directory /run
    measure raid1-read raid1-read --directory /srv/xfs-on-md --directory /srv/btrfs-raid1 --size 32M
    measure raid1-write raid1-write --directory /srv/xfs-on-md --directory /srv/btrfs-raid1 --size 32M
    serial=$(cat "/sys/block/$(readlink -f "$VOLUME" | cut -d/ -f3)/dm/uuid")
    vmdisk bench prepare-device "$VOLUME" --confirm-serial "$serial" > /tmp/said 2>&1
    echo "prepare-volume code=$?" >> /tmp/trials
    measure volumes --plan volumes.yaml --destroy-data-on "$VOLUME" --confirm-serial "$serial" --group vg0 --directory /srv/xfs-on-lv
}
tear_down() {
    quietly umount /srv/xfs-on-md
    quietly umount /srv/btrfs-raid1
    quietly wipefs -a "${C}2" "${D}2"
    quietly wipefs -a /dev/md0
    quietly mdadm --stop /dev/md0
    quietly mdadm --zero-superblock "${C}1" "${D}1"
    quietly wipefs -a "$C" "$D"
    quietly umount /srv/xfs-on-lv
    quietly vgremove -f vg0
    quietly pvremove "$A"
    dd if=/dev/zero of="$B" bs=1M count=1 2>/dev/null
}
