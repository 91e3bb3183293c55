#!/bin/sh
# object.sh - turns the g++ object of one kernel file into the simulator's object.
#
# The sanitizers' hooks get our names. Only symbols that begin with gm_ stay global, so that kernels of
# one name, or the same kernel for CUDA, do not clash. Source lines, functions and shared variables
# become a table (watch/table.h). The debugging information is dropped, because no program needs it then.
#
#   object.sh CC LD OBJCOPY READELF ADDR2LINE ROOT IN OUT
set -eu
export LC_ALL=C

cc=$1 ld=$2 objcopy=$3 readelf=$4 addr2line=$5 root=$6 in=$7 out=$8
here=$root/kernels/sim
code=$out.code

# One code section, so that distances in it stay; without groups, by which a linker would merge
# instances of a template.
"$ld" -r --force-group-allocation -T "$here/object.ld" -o "$code.o" "$in"
"$objcopy" --redefine-syms="$here/watch/hooks.syms" "$code.o"

"$readelf" -sW "$code.o" | awk '
    $4 == "FUNC" && $3 > 0 && $8 ~ /^_Z/ {print "function", $2, $3, $8}
    $4 == "TLS" && $8 ~ /^_ZZ/ {print "shared", $2, $3, $8}' | sort > "$code.symbols"
"$readelf" --debug-dump=info "$code.o" 2> "$code.said" |
    grep -E 'DW_TAG_|Abbrev Number: 0|DW_AT_(name|type|linkage_name|upper_bound|low_pc)' |
    awk -f "$here/watch/dims.awk" >> "$code.symbols"
# It cannot relocate the places of thread-local variables, which nobody asks it for.
grep -v 'unsupported reloc type' "$code.said" >&2 || :
# A place that a report can name: a call of the simulator, or a function's beginning.
{
    "$readelf" -rW "$code.o" | awk '/^Relocation/ {text = / .\.rela?\.text/}
        text && $5 ~ /^gm_sim_/ {print $1}'
    awk '$1 == "function" {print $2}' "$code.symbols"
} | sort -u | "$addr2line" -e "$code.o" -j .text -f -i -a |
    awk -f "$here/watch/table.awk" "$code.symbols" - > "$out.c"

first=$(awk '$1 == "shared" {print $4; exit}' "$code.symbols")
[ -z "$first" ] || "$objcopy" --globalize-symbol="$first" "$code.o"
"$cc" -std=gnu17 -O1 -fPIC -fno-asynchronous-unwind-tables -I "$root" -c -o "$code.table.o" "$out.c"
"$ld" -r -o "$out" "$code.o" "$code.table.o"
"$objcopy" --strip-debug --wildcard --keep-global-symbol='gm_*' "$out"
rm -f "$code.o" "$code.table.o" "$code.symbols" "$code.said"
