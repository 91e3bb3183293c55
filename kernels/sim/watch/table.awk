# table.awk - writes the table of one kernel file that table.h declares.
# It reads the file's symbols in the order of their addresses ("function|shared ADDRESS BYTES NAME"),
# and the output of dims.awk; then the output of addr2line for places in the file: for each the chain
# of inlined functions, innermost first.

# Files of helper functions: an access in one of them is reported at the line where the kernel calls it.
function is_vocabulary(file) {
    return file ~ /(^|\/)(kernels\/sim\/|kernels\/cuda\/lib\/element\.h|proto\/number\/half\.h)/
}

# The function's name in a mangled one: 10copy_tiledIfE... in _Z10copy_tiledIfEvPKT_ or
# _ZN12_GLOBAL__N_110copy_tiledIfEEvPKT_.
function own_name(mangled, nested, name, digits) {
    if (mangled !~ /^_Z/)
        return mangled
    if (mangled ~ /^_ZZ/)
        return "operator()" # of a lambda
    nested = mangled ~ /^_ZN/
    sub(/^_ZN?K?L?/, "", mangled)
    do {
        match(mangled, /^[0-9]+/)
        digits = RLENGTH
        name = substr(mangled, digits + 1, substr(mangled, 1, digits) + 0)
        mangled = substr(mangled, digits + 1 + length(name))
    } while (nested && mangled ~ /^[0-9]/)
    return name
}

# In _ZZ function E variable: the position of the variable. It follows the last E before a number that
# equals the length of the rest, or before a number and a _.
function variable_at(mangled, i, digits, after) {
    for (i = length(mangled); i > 3; i--) {
        if (substr(mangled, i - 1, 1) != "E" || !match(substr(mangled, i), /^[0-9]+/))
            continue
        digits = RLENGTH
        after = i + digits + substr(mangled, i, digits)
        if (after == length(mangled) + 1 || substr(mangled, after, 1) == "_")
            return i
    }
    return 0
}

function text_number(text) {
    if (!(text in number)) {
        number[text] = texts
        text_at[texts++] = text
    }
    return number[text]
}

function end_place(row) {
    if (place == "")
        return
    row = text_number(own_name(outermost)) ", " text_number(file) ", " line
    if (row != last)
        line_at[lines++] = "    {" place ", " row "},"
    last = row
}

BEGIN {
    texts = lines = functions = shareds = 0
}
FNR == NR && $1 == "function" {
    function_number[$4] = functions
    address_of[$4] = $2
    address = $2
    symbol = $4
    sub(/^_ZL/, "_Z", symbol) # static, which nvcc does not say
    function_at[functions++] = "    {0x" address ", \"" symbol "\"},"
    next
}
FNR == NR && $1 == "dims" {
    key = $2 " " $3
    $1 = $2 = $3 = ""
    gsub(/^ +| +$/, "")
    gsub(/ +/, ", ")
    if (key in dims_of && dims_of[key] != $0)
        $0 = "" # two arrays of one name
    dims_of[key] = $0
    next
}
FNR == NR {
    at = variable_at($4)
    if (!at)
        next
    if (!shareds) {
        first = $4
        base = "0x" $2
    }
    match(substr($4, at), /^[0-9]+/)
    shared_name[shareds] = substr($4, at + RLENGTH, substr($4, at, RLENGTH))
    shared_owner[shareds] = "_Z" substr($4, 4, at - 5)
    shared_at[shareds++] = "0x" $2 " - " base ", " $3
    next
}
/^0x/ {
    end_place()
    place = $1
    frames = 0
    next
}
frames % 2 == 0 {
    outermost = $1
    frames++
    next
}
{
    if (frames == 1 || is_vocabulary(file)) {
        file = $1
        line = $1
        sub(/:[0-9?]*$/, "", file)
        sub(/^\/build\//, "", file)
        sub(/.*:/, "", line)
        line += 0
    }
    frames++
}
END {
    end_place()
    print "/* Made by kernels/sim/object.sh. */"
    print "#include \"kernels/sim/watch/table.h\"\n"
    print "extern const char simt_code[], simt_code_end[];\n"
    print "static const char *const text[] = {"
    for (i = 0; i < texts; i++)
        print "    \"" text_at[i] "\","
    print "};\nstatic const struct gm_sim_line line[] = {"
    for (i = 0; i < lines; i++)
        print line_at[i]
    print "};\nstatic const struct gm_sim_function function[] = {"
    for (i = 0; i < functions; i++)
        print function_at[i]
    print "};"
    if (shareds) {
        print "static const struct gm_sim_shared shared[] = {"
        for (i = 0; i < shareds; i++) {
            owner = shared_owner[i] in function_number ? \
                "&function[" function_number[shared_owner[i]] "]" : "0"
            key = address_of[shared_owner[i]]
            if (key == "")
                key = shared_owner[i]
            dims = dims_of[key " " shared_name[i]]
            if (gsub(/,/, ",", dims) > 3)
                dims = "" # more than GM_SIM_DIMS_MAX
            print "    {" shared_at[i] ", {" (dims == "" ? 0 : dims) "}, " owner ", \"" \
                shared_name[i] "\"},"
        }
        print "};\nextern _Thread_local char first[] __asm__(\"" first "\");"
        print "static uintptr_t shared_here(void)\n{\n    return (uintptr_t)first;\n}"
    }
    print "\nstatic const struct gm_sim_table table = {"
    print "    .code = simt_code, .code_end = simt_code_end, .text = text,"
    print "    .line = line, .lines = " lines ", .function = function, .functions = " functions ","
    if (shareds)
        print "    .shared = shared, .shareds = " shareds ", .shared_here = shared_here,"
    print "};"
    print "static const struct gm_sim_table *const row"
    print "    __attribute__((used, section(\"gm_sim_tables\"))) = &table;"
}
