#include "server/request/body/internal.h"

#include <ctype.h>
#include <string.h>

#define SAVE_AS_NPY "np.save('a.npy', array), then curl --data-binary @a.npy"
#define UNPACK "unpack it first, as in "

static const struct {
    const char *magic;
    size_t len;
    const char *hint;
} files[] = {
    {"\x1F\x8B", 2, "gzip: " UNPACK "gunzip -c a.npy.gz | curl --data-binary @- ..."},
    {"PK\x03\x04", 4,
     "a zip archive, as .npz and .xlsx files are: take the array out (unzip -p a.npz arr_0.npy | "
     "curl --data-binary @- ...), or save the table as CSV"},
    {"PK\x05\x06", 4, "an empty zip archive, as a .npz file without arrays is: " SAVE_AS_NPY},
    {"BZh", 3, "bzip2: " UNPACK "bunzip2 -c a.npy.bz2 | curl --data-binary @- ..."},
    {"\xFD"
     "7zXZ",
     5, "xz: " UNPACK "unxz -c a.npy.xz | curl --data-binary @- ..."},
    {"\x28\xB5\x2F\xFD", 4, "zstd: " UNPACK "unzstd -c a.npy.zst | curl --data-binary @- ..."},
    {"\x89HDF", 4, "HDF5: read it with h5py, " SAVE_AS_NPY},
    {"MATLAB ", 7, "a MATLAB file: read it with scipy.io.loadmat, " SAVE_AS_NPY},
    {"\x89PNG", 4, "a PNG image: read it with PIL and numpy.asarray, " SAVE_AS_NPY},
    {"\xFF\xD8\xFF", 3, "a JPEG image: read it with PIL and numpy.asarray, " SAVE_AS_NPY},
    {"GIF8", 4, "a GIF image: read it with PIL and numpy.asarray, " SAVE_AS_NPY},
    {"\x80\x02", 2, "a Python pickle, which nobody should load from strangers: " SAVE_AS_NPY},
    {"\x80\x03", 2, "a Python pickle, which nobody should load from strangers: " SAVE_AS_NPY},
    {"\x80\x04", 2, "a Python pickle, which nobody should load from strangers: " SAVE_AS_NPY},
    {"\x80\x05", 2, "a Python pickle, which nobody should load from strangers: " SAVE_AS_NPY},
    {"PAR1", 4, "Parquet: read it with pandas, " SAVE_AS_NPY},
    {"ARROW1", 6, "an Arrow file: read it with pandas, " SAVE_AS_NPY},
    {"%PDF", 4, "a PDF document, which holds no matrix"},
    {"\xFF\xFE", 2, "UTF-16 text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
    {"\xFE\xFF", 2, "UTF-16 text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
};

const char *gm_body_hint_file(const void *bytes, size_t len)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (len >= files[i].len && memcmp(bytes, files[i].magic, files[i].len) == 0)
            return files[i].hint;
    return NULL;
}

/* The first bytes of a body. */
struct text {
    const char *at, *end;
};

static bool is_text(struct text t)
{
    for (; t.at < t.end; t.at++) {
        unsigned char c = (unsigned char)*t.at;
        if (c == 0x7F || (c < ' ' && !(c >= '\t' && c <= '\r')))
            return false;
    }
    return true;
}

static bool begins(struct text t, const char *with)
{
    size_t len = strlen(with);
    return (size_t)(t.end - t.at) >= len && memcmp(t.at, with, len) == 0;
}

static bool holds(struct text t, const char *what)
{
    for (; t.at < t.end; t.at++)
        if (begins(t, what))
            return true;
    return false;
}

static bool holds_any(struct text t, const char *characters)
{
    for (; t.at < t.end; t.at++)
        if (*t.at && strchr(characters, *t.at))
            return true;
    return false;
}

static struct text first_line(struct text t)
{
    struct text line = {t.at, t.at};
    while (line.end < t.end && *line.end != '\n' && *line.end != '\r')
        line.end++;
    return line;
}

static bool begins_number(struct text t)
{
    while (t.at < t.end && strchr(" \t\"\r\n", *t.at) && *t.at)
        t.at++;
    t.at += t.at < t.end && (*t.at == '-' || *t.at == '+');
    t.at += t.at < t.end && *t.at == '.';
    return t.at < t.end && isdigit((unsigned char)*t.at);
}

/* A line of numbers, or a line of names followed by one of numbers. */
static bool looks_like_csv(struct text t)
{
    struct text line = first_line(t), next = {line.end, t.end};

    if (begins_number(line)) {
        for (; line.at < line.end; line.at++)
            if (!strchr("0123456789+-.,; \t\"eEnNaAiIfFtTyY", *line.at))
                return false;
        return true;
    }
    return holds_any(line, ",;\t") && begins_number(next);
}

/* "name=value", as HTML forms send it, and curl -d on request. */
static bool looks_like_field(struct text t)
{
    if (t.at == t.end || !isalpha((unsigned char)*t.at))
        return false;
    while (t.at < t.end && (isalnum((unsigned char)*t.at) || *t.at == '_'))
        t.at++;
    return t.at < t.end && *t.at == '=';
}

/* A single word that ends like a file name: the name was sent, not the file. */
static bool looks_like_file_name(struct text t)
{
    static const char *const suffixes[] = {".npy", ".csv", ".json", ".txt",
                                           ".npz", ".bin", ".tsv",  ".dat"};
    while (t.end > t.at && isspace((unsigned char)t.end[-1]))
        t.end--;
    size_t len = (size_t)(t.end - t.at);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t n = strlen(suffixes[i]);
        if (len > n && memcmp(t.end - n, suffixes[i], n) == 0)
            return !holds_any(t, "\n\r,;");
    }
    return false;
}

/* What a text looks like; NULL if it is unknown. */
static const char *text_hint(struct text t)
{
    if (begins(t, "\xEF\xBB\xBF[") || begins(t, "\xEF\xBB\xBF{"))
        return "JSON behind a byte order mark, which JSON does not have: save it as UTF-8 without "
               "one (tail -c +4 a.json | curl --data-binary @- ...)";
    t.at += begins(t, "\xEF\xBB\xBF") ? 3 : 0;
    if (begins(t, "'[") || begins(t, "'{") || begins(t, "\"[") || begins(t, "\"{"))
        return "JSON in quotes: the shell has passed them on (on Windows write -d "
               "\"[[1,2],[3,4]]\", with \\\" for the quotes inside)";
    if (begins(t, "%"))
        return "percent-encoded text: send it as it is, with -d or --data-binary in place of "
               "--data-urlencode";
    if (begins(t, "(") || holds(first_line(t), "([") || holds(first_line(t), "(("))
        return "Python: write rows in square brackets, as JSON has them: -d '[[1,2],[3,4]]'";
    if (looks_like_csv(t) && !holds_any(first_line(t), ",;\t") && holds(first_line(t), " "))
        return "numbers separated by blanks: make it CSV with tr -s ' ' ',' < a.txt | curl "
               "--data-binary @- -H 'Content-Type: text/csv' ...";
    if (looks_like_csv(t))
        return "CSV: say so with -H 'Content-Type: text/csv', and send a file with --data-binary "
               "@a.csv (-d takes its line ends out); two of them with -F a=@a.csv -F b=@b.csv";
    if (begins(t, "<"))
        return "HTML or XML: send the numbers as JSON, CSV or NPY";
    if (looks_like_field(t))
        return "a form's fields, name=value: parameters go into the URL, as in "
               "?kernel=naive&repeat=10, and matrices as JSON, -d "
               "'{\"a\":[[1,2]],\"b\":[[3],[4]]}', "
               "or as parts, -F a=@a.npy -F b=@b.npy";
    return NULL;
}

enum gm_status gm_body_hint_fail(const void *bytes, size_t len, bool all, struct gm_error *err)
{
    struct text t = {bytes, (const char *)bytes + len};
    const char *hint = gm_body_hint_file(bytes, len);
    size_t shown = len < 60 ? len : 60;

    if (!hint && begins(t, "--") && holds(t, "ontent-"))
        hint = "parts (multipart/form-data), but no Content-Type says so and what their boundary "
               "is: use curl -F a=@a.npy -F b=@b.npy, and no -H 'Content-Type: ...' beside it";
    if (!hint && len > 8 && holds((struct text){t.at, t.at + 9}, "NUMPY"))
        hint = "an NPY file that was converted as if it were text: send its bytes as they are, "
               "with curl --data-binary @a.npy";
    if (!hint && is_text(t)) {
        bool at = begins(t, "@");
        if (all && !at && holds_any(t, "=&") && looks_like_file_name(t))
            hint =
                "the fields of a form, which curl -d sends as they are typed: files go as parts, "
                "curl -F a=@a.npy -F b=@b.npy";
        else if (at || (all && looks_like_file_name(t)))
            return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                           "the body is the text '%.*s' and not the file: curl reads it with "
                           "--data-binary %s%.*s",
                           (int)shown, t.at, at ? "" : "@", (int)shown, t.at);
        if (!hint)
            hint = text_hint(t);
    }
    if (hint)
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE, "the body looks like %s", hint);
    return gm_fail(
        err, GM_UNSUPPORTED_MEDIA_TYPE,
        "the body begins neither like NPY nor like JSON, and no Content-Type says what it is: for "
        "CSV add -H 'Content-Type: text/csv', for bare elements -H 'Content-Type: "
        "application/octet-stream' and ?shape=RxC&dtype=f32");
}
