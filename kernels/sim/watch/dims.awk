# dims.awk - prints the dimensions of functions' arrays, from `readelf --debug-dump=info`.
# One line each: "dims FUNCTION NAME COUNT...". FUNCTION is its address, or its mangled name if it has none.

function value(line) { # of "<1c>   DW_AT_name : (indirect string, offset: 0x5): tile"
    sub(/^.*DW_AT_[a-z_]+ *: /, "", line)
    sub(/^\(.*\): /, "", line)
    sub(/[ \t]+$/, "", line)
    return line
}
function reference(line) {
    line = value(line)
    gsub(/[<>]|0x/, "", line)
    return line
}

/DW_TAG_|Abbrev Number: 0/ {
    match($0, /<[0-9]+>/)
    depth = substr($0, RSTART + 1, RLENGTH - 2) + 0
    match($0, /><[0-9a-f]+>/)
    at = substr($0, RSTART + 2, RLENGTH - 3)
    tag = $NF
    if (tag == "(DW_TAG_subprogram)")
        function_of[depth] = at
    else if (tag == "(DW_TAG_variable)" || tag == "(DW_TAG_array_type)")
        array_at = at
    if (tag == "(DW_TAG_variable)") {
        inside[at] = ""
        for (i = depth - 1; i > 0 && inside[at] == ""; i--)
            inside[at] = function_of[i]
    } else if (tag != "(DW_TAG_subprogram)") {
        function_of[depth] = ""
    }
    next
}
tag == "(DW_TAG_subprogram)" && /DW_AT_low_pc/ {
    called[at] = value($0)
    sub(/^0x/, "", called[at])
    called[at] = sprintf("%16s", called[at])
    gsub(/ /, "0", called[at])
}
tag == "(DW_TAG_subprogram)" && /DW_AT_linkage_name/ && !(at in called) { called[at] = value($0) }
tag == "(DW_TAG_variable)" && /DW_AT_name/ { name[at] = value($0) }
tag == "(DW_TAG_variable)" && /DW_AT_type/ { type[at] = reference($0) }
tag == "(DW_TAG_subrange_type)" && /DW_AT_upper_bound/ {
    counts[array_at] = counts[array_at] " " (value($0) + 1)
}

END {
    for (at in name)
        if (inside[at] in called && counts[type[at]] != "")
            print "dims", called[inside[at]], name[at] counts[type[at]]
}
