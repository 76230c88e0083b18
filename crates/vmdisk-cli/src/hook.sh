#!/bin/sh
# Checks a guest of libvirt before it starts. `vmdisk hook install` wrote this file.
#
# It reads the guest from standard input and the host from files, and asks neither libvirt, which waits for it, nor another
# program. Findings are logged. Only findings of the rules in `refuse` keep a guest from starting; a failure of vmdisk does not.
vmdisk=@VMDISK@
refuse='@REFUSE@'
[ "$2" = prepare ] && [ -x "$vmdisk" ] || exit 0
# Root's home and a vmdisk.toml there decide nothing.
cd / || exit 0
if [ -n "$refuse" ]; then set -- "$1" --select "$refuse" --fail-on error; else set -- "$1" --exit-zero; fi
guest=$1
shift
said=$("$vmdisk" lint - --live --no-config --stdin-filename "$guest" --format concise "$@" 2>&1)
status=$?
[ -z "$said" ] || printf '%s\n' "$said" | logger -t vmdisk 2>/dev/null
[ "$status" = 1 ] || exit 0
printf '%s\n' "vmdisk refuses the start of $guest" "$said" >&2
exit 1
