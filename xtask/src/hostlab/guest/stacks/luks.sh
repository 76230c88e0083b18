# Two encrypted disks: one that passes discards on, one as cryptsetup opens it by itself.
build() {
    printf secret > /tmp/key
    format() {
        quietly cryptsetup luksFormat -q --type luks2 --uuid "$2" --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \
            --key-file /tmp/key "$1"
    }
    format "$C" "$UUID_1"
    format "$D" "$UUID_2"
    quietly cryptsetup open --key-file /tmp/key --allow-discards "$C" with-discards
    quietly cryptsetup open --key-file /tmp/key "$D" without-discards
}
facts() {
    collect /dev/mapper/with-discards /dev/mapper/without-discards
}
tear_down() {
    quietly cryptsetup close with-discards
    quietly cryptsetup close without-discards
    quietly wipefs -a "$C" "$D"
}
