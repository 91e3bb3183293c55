#!/bin/sh
# join.sh - makes one object of those of several kernels, for the simulator: the sanitizers' hooks
# get our names, and all names but ours that begin with gm_ stay within their file, as two kernels
# of one name, or the same kernel's functions for CUDA, must not be taken for each other.
#
#   join.sh LD OBJCOPY HOOKS OUT OBJECT...
set -eu

ld=$1 objcopy=$2 hooks=$3 out=$4
shift 4
number=0
for object in "$@"; do
    part=$out.$number.o
    # Without its groups, in which a linker would look for copies of a template's instance.
    "$ld" -r --force-group-allocation -o "$part" "$object"
    "$objcopy" --redefine-syms="$hooks" --wildcard --keep-global-symbol='gm_*' "$part"
    parts="${parts:-} $part"
    number=$((number + 1))
done
# shellcheck disable=SC2086
"$ld" -r -o "$out" $parts
# shellcheck disable=SC2086
rm -f $parts
