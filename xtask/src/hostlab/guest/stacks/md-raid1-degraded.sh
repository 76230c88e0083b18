# A mirror with one disk, that a guest is given as it is.
build() {
    quietly mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 --homehost=hostlab \
        --name=mirror --uuid="$UUID_1" "$C" "$D"
    quietly mdadm --fail /dev/md0 "$D"
    quietly mdadm --remove /dev/md0 "$D"
}
facts() {
    collect /dev/md0
}
tear_down() {
    quietly mdadm --stop /dev/md0
    quietly mdadm --zero-superblock "$C" "$D"
}
