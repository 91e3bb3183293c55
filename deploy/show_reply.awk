# show_reply.awk - prints a JSON reply of gemmd for people: the matrix with its columns aligned,
# and the account as a few labelled lines. With -v want="1 2;3 4" it fails unless the matrix is
# that one; a problem document fails always. Also takes an account alone (header Gemmd-Stats): rates
# are printed of that only, since those of a matrix small enough to be printed say nothing.

{ text = text $0 "\n" }

END {
    value("")
    if ("code" in member && "title" in member) {
        printf "      refused  %s: %s\n", member["code"], member["detail"]
        exit 1
    }
    prefix = "kernel" in member ? "" : "stats."
    got = matrix()
    account()
    if (got != want) {
        printf "      expected %s\n      but got  %s\n", want, got == "" ? "nothing" : got
        exit 1
    }
}

# A JSON reader: value(path) takes one value off the front of `text` and records a number, string
# or word as member[path]. Paths are like "stats.us.kernel" and "data.0.1".
function value(path,    n, name) {
    skip()
    if (take("{")) {
        for (n = 0; !take("}"); n++) {
            if (n) expect(",")
            name = string()
            expect(":")
            value(path == "" ? name : path "." name)
        }
    } else if (take("[")) {
        for (n = 0; !take("]"); n++) {
            if (n) expect(",")
            value(path == "" ? n : path "." n)
        }
        count[path] = n
    } else if (substr(text, 1, 1) == "\"") {
        member[path] = string()
    } else if (match(text, /^[-+.0-9a-zA-Z]+/)) {
        member[path] = substr(text, 1, RLENGTH)
        text = substr(text, RLENGTH + 1)
    } else {
        broken("a value")
    }
}

function string(    s) {
    skip()
    if (!match(text, /^"([^"\\]|\\.)*"/)) broken("a string")
    s = substr(text, 2, RLENGTH - 2)
    text = substr(text, RLENGTH + 1)
    return s
}

function take(c) {
    skip()
    if (substr(text, 1, 1) != c) return 0
    text = substr(text, 2)
    return 1
}

function expect(c) { if (!take(c)) broken("a '" c "'") }

function skip() { if (match(text, /^[ \t\r\n]+/)) text = substr(text, RLENGTH + 1) }

function broken(what) {
    printf "      the reply is not JSON: %s should stand before: %s\n", what, substr(text, 1, 60)
    exit 1
}

# Prints the matrix; returns it in the form of `want`.
function matrix(    i, j, element, width, all) {
    for (i = 0; i < count["data"]; i++)
        for (j = 0; j < count["data." i]; j++) {
            element = member["data." i "." j]
            if (length(element) > width[j]) width[j] = length(element)
        }
    for (i = 0; i < count["data"]; i++) {
        printf "%s", i ? "              " : "      result  "
        if (i) all = all ";"
        for (j = 0; j < count["data." i]; j++) {
            element = member["data." i "." j]
            printf " %" width[j] "s", element
            all = all (j ? " " : "") (element + 0)
        }
        printf "\n"
    }
    return all
}

function account(    names, n, i, line) {
    printf "      kernel   %s on %s\n", stat("kernel"), stat("device")
    n = split("receive decode queue h2d prepare kernel d2h encode", names, " ")
    for (i = 1; i <= n; i++)
        if (has("us." names[i]))
            line = line (line == "" ? "" : ", ") names[i] " " short(stat("us." names[i]))
    if (has("us.total")) printf "      time     %s us: %s\n", short(stat("us.total")), line
    if (prefix != "") return
    line = ""
    if (has("bytes_min")) line = stat("bytes_min") " bytes to move"
    if (has("effective_gbs")) line = line ", " short(stat("effective_gbs")) " GB/s"
    if (has("percent_of_copy"))
        line = line ", " short(stat("percent_of_copy")) " % of a copy's " short(stat("copy_gbs"))
    if (line != "") printf "      memory   %s\n", line
    if (stat("flops") + 0 > 0) {
        line = stat("flops") " operations"
        if (has("gflops")) line = line ", " short(stat("gflops")) " GFLOP/s"
        if (has("percent_of_roofline"))
            line = line ", " short(stat("percent_of_roofline")) " % of the " stat("bound") \
                " roofline's " short(stat("roofline_gflops"))
        printf "      compute  %s\n", line
    }
}

function has(name) { return (prefix name) in member }

function stat(name) { return has(name) ? member[prefix name] : "" }

# Three significant digits, without an exponent where that reads well.
function short(x) { x += 0; return x >= 100 ? sprintf("%.0f", x) : sprintf("%.3g", x) }
