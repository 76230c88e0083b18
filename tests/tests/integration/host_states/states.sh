#!/bin/sh
# Makes states of a real host, and prints what `vmdisk lint --live` says of each before and after it is mended.
# Usage: unshare --mount --propagation private sh states.sh VMDISK FOLDER
#
# A line of the output is `ok RULE`, `missed RULE`, `stays RULE` (reported after the mending), or `cannot STATE`.
set -u
vmdisk=$1 folder=$2
cd "$folder" || exit 2
devices=
trap 'swapoff swap.img 2>/dev/null; cd /; umount --lazy --recursive "$folder"/m/* 2>/dev/null; for device in $devices; do losetup --detach "$device"; done' EXIT

# device FILE SIZE OPTION…: the loop device over a new file, in $device.
device() {
  file=$1 size=$2
  shift 2
  truncate -s "$size" "$file"
  device=$(losetup --find --show "$@" "$file") && devices="$devices $device"
}
# mounted NAME SIZE "MKFS" OPTIONS LOOP-OPTION…: a file system of a loop device on m/NAME.
mounted() {
  name=$1 size=$2 mkfs=$3 options=$4
  shift 4
  mkdir -p "m/$name"
  device "$name.dev" "$size" "$@" && $mkfs "$device" >/dev/null && mount -o "$options" "$device" "m/$name" || echo "cannot $name"
}
raw() { for image; do head -c 8388608 /dev/zero >"$image" && chmod 600 "$image"; done; }
qcow2() { (umask 077 && qemu-img create -q -f qcow2 "$@"); }
patched() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }

# guest NAME KEY=VALUE… IMAGE…: the XML of a guest in NAME.xml. Keys hold for the images behind them.
guest() {
  name=$1 format=raw driver="cache='none' io='threads'" inside= source= kind=disk bus=virtio letter=a disks= as_type=
  memory= type=qemu machine=pc-q35-7.2 system= emulator=/usr/bin/qemu-system-x86_64
  shift
  for word; do
    case $word in
      *=*) eval "${word%%=*}=\${word#*=}" ;;
      *)
        as=file attribute=file
        [ -b "$word" ] && [ -z "$as_type" ] && as=block attribute=dev
        disks="$disks<disk type='$as' device='$kind'><driver name='qemu' ${format:+type='$format'} $driver/>
<source $attribute='$(realpath -m "$word")'>$source</source><target dev='vd$letter' bus='$bus'/>$inside</disk>"
        letter=$(echo "$letter" | tr abc bcd)
        ;;
    esac
  done
  echo "<domain type='$type'><name>$name</name><memory unit='MiB'>256</memory>$memory<vcpu>2</vcpu>
<os><type arch='x86_64' machine='$machine'>hvm</type>$system</os><features><acpi/></features>
<devices><emulator>$emulator</emulator>$disks</devices></domain>" >"$name.xml"
}
has() {
  "$vmdisk" lint --live --format concise --exit-zero "$@" 2>>errors.log | grep -q "\[$rule\]"
}
# state RULE "BAD" "GOOD" [COMMAND]: two guests, or several each, as words of `guest`; the command mends what the bad one has.
state() {
  rule=$1
  build bad "$2"
  result=ok
  has bad*.xml || result=missed
  [ $# -lt 4 ] || eval "$4"
  build good "$3"
  if has good*.xml; then result=stays; fi
  echo "$result $rule"
  rm -f bad*.xml good*.xml
}
# build NAME "WORDS; WORDS": the guests.
build() {
  number=0 rest=$2
  while [ -n "$rest" ]; do
    words=${rest%%;*}
    eval "guest $1$number $words"
    number=$((number + 1))
    case $rest in *\;*) rest=${rest#*;} ;; *) rest= ;; esac
  done
}

ext4="mkfs.ext4 -q -F"
mounted ok 600M "$ext4" defaults --direct-io=on
mounted nb 100M "$ext4" nobarrier --direct-io=on
mounted journal 100M "$ext4" data=journal --direct-io=on
mounted sectors 100M "$ext4" defaults --sector-size 4096 --direct-io=on
mounted buffered 100M "$ext4" defaults
mounted readonly 50M "mkfs.ext2 -q -F" defaults
mounted full 60M "$ext4" defaults --direct-io=on
mounted xfs 400M "mkfs.xfs -q -f" defaults --direct-io=on
mounted btrfs 400M "mkfs.btrfs -q -f" defaults --direct-io=on
mkdir -p m/tmp m/ram m/overlay m/volatile m/overnb m/mirror m/parity
mount -t tmpfs tmpfs m/tmp && mount -t ramfs ramfs m/ram
for below in ok nb; do mkdir -p m/$below/low m/$below/up m/$below/work; done
mkdir -p m/ok/low2 m/ok/up2 m/ok/work2
mount -t overlay overlay -o lowerdir=$PWD/m/ok/low,upperdir=$PWD/m/ok/up,workdir=$PWD/m/ok/work m/overlay
mount -t overlay overlay -o volatile,lowerdir=$PWD/m/ok/low2,upperdir=$PWD/m/ok/up2,workdir=$PWD/m/ok/work2 m/volatile
mount -t overlay overlay -o lowerdir=$PWD/m/nb/low,upperdir=$PWD/m/nb/up,workdir=$PWD/m/nb/work m/overnb
device one.dev 200M && one=$device && device two.dev 200M && two=$device
mkfs.btrfs -q -f -d raid1 -m raid1 "$one" "$two" >/dev/null && mount -o device="$two" "$one" m/mirror
for number in 1 2 3; do device parity$number.dev 200M && eval "parity$number=$device"; done
mkfs.btrfs -q -f -d raid5 -m raid1 "$parity1" "$parity2" "$parity3" >/dev/null 2>&1 &&
  mount -o device="$parity2",device="$parity3" "$parity1" m/parity
device plain.dev 60M --direct-io=on && plain=$device
device cached.dev 60M && cached=$device
device locked.dev 60M --read-only && locked=$device
device small.dev 60M --direct-io=on && small=$device
device wide.dev 60M --sector-size 4096 --direct-io=on && wide=$device

ok=m/ok good=m/ok/a.raw
for place in ok nb journal sectors buffered readonly full xfs btrfs tmp ram overlay volatile overnb mirror parity; do
  raw "m/$place/a.raw"
done
raw m/ok/b.raw b.dev
truncate -s 2G m/btrfs/cow.raw && chmod 600 m/btrfs/cow.raw
truncate -s 40M m/ok/sparse.raw && chmod 600 m/ok/sparse.raw
for place in btrfs mirror; do
  : >m/$place/nocow.raw && chattr +C m/$place/nocow.raw && raw m/$place/nocow.raw
done

state mount-nobarrier m/nb/a.raw m/nb/a.raw 'mount -o remount,barrier m/nb'
mount -o remount,nobarrier m/nb
state mount-nobarrier m/overnb/a.raw m/overlay/a.raw
state overlay-volatile m/volatile/a.raw m/overlay/a.raw
state image-on-volatile-filesystem m/tmp/a.raw $good
truncate -s 60M m/tmp/below.dev m/nb/below.dev && mkdir -p m/ontmp m/onnb
for below in tmp nb; do
  device m/$below/below.dev 60M && mkfs.ext4 -q -F "$device" && mount "$device" m/on$below && raw m/on$below/a.raw
done
state image-on-volatile-filesystem m/ontmp/a.raw $good
state mount-nobarrier m/onnb/a.raw $good
state btrfs-dio-buffered m/btrfs/a.raw m/btrfs/nocow.raw
state btrfs-cow-image "driver=\"cache='writeback'\" m/btrfs/cow.raw" "driver=\"cache='writeback'\" m/btrfs/nocow.raw"
state btrfs-nocow-mirrored m/mirror/nocow.raw m/btrfs/nocow.raw
state btrfs-raid56 m/parity/a.raw m/btrfs/a.raw
btrfs -q subvolume create m/btrfs/taken && : >m/btrfs/taken/n.raw && chattr +C m/btrfs/taken/n.raw && raw m/btrfs/taken/n.raw
btrfs -q subvolume snapshot m/btrfs/taken m/btrfs/snapshot
state btrfs-nocow-snapshotted m/btrfs/taken/n.raw m/btrfs/nocow.raw
state io-native-on-buffered-dio "driver=\"cache='none' io='native'\" m/journal/a.raw" "driver=\"cache='none' io='native'\" $good"
state odirect-silently-buffered m/journal/a.raw $good
state odirect-unsupported m/ram/a.raw "driver=\"cache='writeback'\" m/ram/a.raw"
state io-native-sparse-image "driver=\"cache='none' io='native' discard='unmap'\" m/ok/sparse.raw" "driver=\"cache='none' io='native'\" $good"
state discard-missing-thin m/ok/sparse.raw "driver=\"cache='none' discard='unmap'\" m/ok/sparse.raw"
state loop-device-buffered "$cached" "$cached" 'losetup --direct-io=on $cached'
state loop-device-buffered m/buffered/a.raw m/xfs/a.raw
state lun-refused "bus=scsi kind=lun $plain" "bus=scsi $plain"
device used.dev 40M --direct-io=on && used=$device && mkfs.ext4 -q -F "$used" && mkdir -p m/used && mount "$used" m/used
state source-is-mounted used.dev b.dev
state source-is-mounted "$used" "$used" 'umount m/used'
raw swap.img && mkswap -q swap.img && swapon swap.img
state source-is-mounted swap.img swap.img 'swapoff swap.img'
mount -o remount,ro m/readonly
state read-only-filesystem m/readonly/a.raw m/readonly/a.raw 'mount -o remount,rw m/readonly'
raw m/ok/fixed.raw && chattr +i m/ok/fixed.raw
state read-only-filesystem m/ok/fixed.raw m/ok/fixed.raw 'chattr -i m/ok/fixed.raw'
state read-only-filesystem "$locked" "$plain"
raw m/ok/open.raw && chmod 666 m/ok/open.raw
state image-world-readable m/ok/open.raw m/ok/open.raw 'chmod 600 m/ok/open.raw'
mkdir m/ok/closed && raw m/ok/closed/a.raw && chmod 700 m/ok/closed
state image-unreachable m/ok/closed/a.raw m/ok/closed/a.raw 'chmod 755 m/ok/closed'
state source-missing m/ok/gone.raw m/ok/gone.raw 'raw m/ok/gone.raw'
state source-kind-mismatch "as_type=file $plain" "$plain"
state unstable-device-path /dev/sda $good

qcow2 m/ok/whole.qcow2 -o preallocation=metadata 20M
qcow2 m/ok/over.qcow2 -b "$PWD/m/ok/b.raw" -F raw
qcow2 m/ok/orphan.qcow2 -u -b "$PWD/m/ok/nothing.raw" -F raw 8M
qcow2 m/ok/short.qcow2 -b "$PWD/m/ok/b.raw" -F raw 4M
qcow2 m/ok/untold.qcow2 -b "$PWD/m/ok/b.raw" -F raw && patched m/ok/untold.qcow2 112 '\0\0\0\0' 
cp m/ok/whole.qcow2 m/ok/dirty.qcow2 && patched m/ok/dirty.qcow2 79 '\001'
cp m/ok/whole.qcow2 m/ok/corrupt.qcow2 && patched m/ok/corrupt.qcow2 79 '\002'
qcow2 m/ok/clusters.qcow2 -o cluster_size=4k 20M
qcow2 m/ok/lazy.qcow2 -o lazy_refcounts=on 20M
qcow2 m/ok/huge.qcow2 4T
qcow2 m/ok/chain0.qcow2 8M
for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  qcow2 m/ok/chain$number.qcow2 -b "$PWD/m/ok/chain$((number - 1)).qcow2" -F qcow2
done
qcow2 m/ok/outside.qcow2 -o data_file="$PWD/m/ok/outside.data",data_file_raw=on 8M && rm m/ok/outside.data
luks="<encryption format='luks'><secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f'/></encryption>"
truncate -s 8388700 m/sectors/odd.raw && : >m/ok/empty.raw && raw m/ok/install.iso m/overlay/up.raw && chmod 600 m/sectors/odd.raw m/ok/empty.raw
qemu-img create -q -f qcow2 "$small" 64M
for name in one two; do truncate -s 30M m/full/$name.raw && chmod 600 m/full/$name.raw; done
truncate -s 1000000 m/ok/CODE.fd
q=format=qcow2
state backing-missing "$q m/ok/orphan.qcow2" "$q m/ok/orphan.qcow2" 'raw m/ok/nothing.raw'
state overlay-smaller-than-backing "$q m/ok/short.qcow2" "$q m/ok/short.qcow2" 'qemu-img resize -q m/ok/short.qcow2 8M'
state backing-format-missing "$q m/ok/untold.qcow2" "$q m/ok/untold.qcow2" 'qemu-img rebase -u -b "$PWD/m/ok/b.raw" -F raw m/ok/untold.qcow2'
state format-mismatch m/ok/whole.qcow2 "$q m/ok/whole.qcow2"
state format-missing "format= m/ok/whole.qcow2" "$q m/ok/whole.qcow2"
state qcow2-dirty-bit "$q m/ok/dirty.qcow2" "$q m/ok/dirty.qcow2" 'qemu-img check -q -r all m/ok/dirty.qcow2'
state qcow2-corrupt-bit "$q m/ok/corrupt.qcow2" "$q m/ok/corrupt.qcow2" 'qemu-img check -q -r all m/ok/corrupt.qcow2'
state qcow2-clusters-small "$q m/ok/clusters.qcow2" "$q m/ok/whole.qcow2"
state qcow2-lazy-refcounts "$q m/ok/lazy.qcow2" "$q m/ok/whole.qcow2"
state qcow2-l2-cache-small "$q m/ok/huge.qcow2" "$q m/ok/whole.qcow2"
state image-larger-than-free-space "$q m/ok/huge.qcow2" "$q m/ok/whole.qcow2"
state chain-too-long "$q m/ok/chain20.qcow2" "$q m/ok/chain1.qcow2"
state encryption-mismatch "$q source=\"$luks\" m/ok/whole.qcow2" "$q m/ok/whole.qcow2"
state data-file-missing "$q m/ok/outside.qcow2" "$q m/ok/outside.qcow2" 'raw m/ok/outside.data'
state image-size-unaligned m/sectors/odd.raw m/sectors/odd.raw 'truncate -s 8M m/sectors/odd.raw'
state image-empty m/ok/empty.raw m/ok/empty.raw 'truncate -s 8M m/ok/empty.raw'
state guest-sector-512-on-4kn m/sectors/a.raw "inside=\"<blockio logical_block_size='4096' physical_block_size='4096'/>\" m/sectors/a.raw"
state guest-sector-512-on-4kn "$wide" "$plain"
state iso-writable m/ok/install.iso "inside='<readonly/>' m/ok/install.iso"
state hugepages-insufficient "memory='<memoryBacking><hugepages/></memoryBacking>' $good" $good
state duplicate-disk-source "$plain plain.dev" "$plain m/ok/b.raw"
ln m/ok/a.raw m/ok/same.raw
state image-shared-by-guests "$good; m/ok/same.raw" "$good; m/ok/b.raw"
state image-shared-by-guests "$plain; plain.dev" "$plain; m/ok/b.raw"
state image-shared-by-guests 'm/overlay/up.raw; m/ok/up/up.raw' 'm/overlay/up.raw; m/ok/b.raw'
state backing-image-written "$q m/ok/over.qcow2; m/ok/b.raw" "$q m/ok/over.qcow2; $good"
state qcow2-device-too-small "$q $small" "$plain"
state slice-beyond-storage "source=\"<slices><slice type='storage' offset='4194304' size='8388608'/></slices>\" $good" "source=\"<slices><slice type='storage' offset='4194304' size='4194304'/></slices>\" $good"
state machine-missing-in-qemu "machine=pc-q35-99.0 $good" "machine=q35 $good"
state emulator-missing "emulator=/usr/bin/qemu-system-nothing $good" $good
state guests-exceed-free-space 'driver="discard='\''unmap'\''" m/full/one.raw; driver="discard='\''unmap'\''" m/full/two.raw' m/full/a.raw
state uefi-files-refused "system='<loader type=\"pflash\" readonly=\"yes\">$PWD/m/ok/CODE.fd</loader>' $good" "system='<loader type=\"pflash\" readonly=\"yes\">$PWD/m/ok/CODE.fd</loader>' $good" 'truncate -s 2M m/ok/CODE.fd'
