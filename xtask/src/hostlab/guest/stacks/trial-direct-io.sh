# Every file system at hand, written to with O_DIRECT; on btrfs also while the memory written from changes.
places="ext4 ext4-data-journal xfs btrfs btrfs-nocow btrfs-raid1 btrfs-raid1-nocow tmpfs overlay"
build() {
    for place in $places; do mkdir -p "/srv/$place"; done
    quietly mkfs.ext4 -q -E lazy_itable_init=0 "$A"
    quietly mount "$A" /srv/ext4
    quietly mkfs.ext4 -q -E lazy_itable_init=0 "$B"
    quietly mount -o data=journal "$B" /srv/ext4-data-journal
    quietly mkfs.xfs -q -f "$SCSI_4K"
    quietly mount "$SCSI_4K" /srv/xfs
    quietly mkfs.btrfs -q -f -d single -m single "$NVME_512"
    quietly mount "$NVME_512" /srv/btrfs
    quietly mkfs.btrfs -q -f -d raid1 -m raid1 "$C" "$D"
    quietly mount "$C" /srv/btrfs-raid1
    rmdir /srv/btrfs-nocow /srv/btrfs-raid1-nocow
    for parent in btrfs btrfs-raid1; do
        mkdir "/srv/$parent/nocow"
        quietly chattr +C "/srv/$parent/nocow"
        ln -s "/srv/$parent/nocow" "/srv/$parent-nocow"
    done
    quietly mount -t tmpfs tmpfs /srv/tmpfs
    mkdir /srv/ext4/lower /srv/ext4/upper /srv/ext4/work
    quietly mount -t overlay -o lowerdir=/srv/ext4/lower,upperdir=/srv/ext4/upper,workdir=/srv/ext4/work overlay /srv/overlay
    for place in $places; do truncate -s 16M "/srv/$place/disk.img"; done
}
facts() {
    for place in $places; do
        vmdisk facts "/srv/$place/disk.img" > /tmp/facts.json || exit 1
        hand_over "$stack.$place.facts" /tmp/facts.json
        # Exit code 1: the image does not exist yet.
        vmdisk facts --probe-dio "/srv/$place" "/srv/$place/new.img" > /tmp/facts.json
        [ $? = 1 ] || exit 1
        hand_over "$stack.$place.probed" /tmp/facts.json
        trial "direct $place" direct "/srv/$place"
    done
    for place in ext4 xfs btrfs btrfs-nocow; do
        trial "race $place" race "/srv/$place/race.img" 300
    done
}
tear_down() {
    for place in overlay tmpfs btrfs-raid1 btrfs xfs ext4-data-journal ext4; do quietly umount "/srv/$place"; done
    rm /srv/btrfs-nocow /srv/btrfs-raid1-nocow
    quietly wipefs -a "$A" "$B" "$C" "$D" "$SCSI_4K" "$NVME_512"
}
