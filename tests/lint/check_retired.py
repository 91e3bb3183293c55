"""Words and identifiers that were replaced by the field's own (GLOSSARY.md) do not come back.

Exempt are CHANGELOG.md and GLOSSARY.md, which name them, and lines that make an old public name an
alias: those say `alias`, or until when (`until 0.3`).
"""
import re

import lint

ALIAS = re.compile(r"\balias(es)?\b|\buntil (0\.3|1\.0)\b", re.IGNORECASE)
EXEMPT = ("CHANGELOG.md", "GLOSSARY.md", "tests/lint/check_retired.py")

# (pattern, what to say instead). Of words with a plain meaning too, only identifiers.
RETIRED = [
    (r"\b[Rr]eckon\w*|\b\w*_reckon\w*", "estimate, cost model"),
    (r"(?i)\b\w*yardstick\w*", "baseline"),
    (r"(?i)\b\w*patience\w*", "time-out, minimum rate"),
    (r"(?i)\b(\w+_)?slabs?(_\w+)?\b", "buffer (memory), k-tile or stage (of a product)"),
    (r"\bas (it lies|they lie)\b", "in its stored order, or the load mode's name"),
    (r"\b(gm_cut|gm_deal|GM_CUT)\w*\b", "tile config, thread map"),
    (r"\b(gm_feed|gm_drain)\w*\b", "loader, epilogue"),
    (r"\b(gm_coming|gm_offer|GM_OFFER|gm_menu)\w*\b", "load plan, candidate config"),
    (r"\b(gm_way|gm_ways|gm_by_ways|GM_WAY)(_\w+)?\b|\b\w*pitched\w*", "load mode, repack"),
    (r"\bgm_(banded_)?walk\w*\b", "tile order"),
    (r"\bgm_turn\w*\b", "register transpose"),
    (r"\bgm_(in_)?piece\w*\b", "vector"),
    (r"\bgm_(spread|join|fold)(_(for|bytes))?\b", "bank padding, unaligned load, warp reduce-scatter"),
    (r"\bgm_(door|carrier|wire|reply_wire|peer)(_\w+)?\b",
     "connection limiter, transport, raw reply, socket info"),
    (r"\bgm_(budget|share)(_\w+)?\b|\bgm_block_(put|get|cost|log)\b",
     "memory quota, reservation, allocation"),
    (r"\bgm_(job_of_place|request_set_place)\b", "queue slot"),
    (r"(?i)\bgm_(cuda|sched)_lanes?(_\w+)?\b|--lanes\b|\bGEMMD_LANES\b", "stream"),
    (r"\bgm_timeline_mark\w*\b|\bGM_CUDA_MARKS\b", "event"),
    (r"(?i)\b(\w+_)?(gm_)?solo(_\w+)?\b", "single-thread pool"),
    (r"\b\w*survey(_\w+)?\b", "prescan"),
    (r"\b((JSON|NPY)_)?FORMS\b|\bform_can\b", "format"),
    (r"(?i)\bdevice_marks?(_\w+)?\b|\brun_in_lanes\b", "event, stream"),
    (r"\bjoin_slices\b|\bwalk_(square|tall|narrow|bands)\w*\b", "split-K, tile order"),
    (r"\bHUNT(_MATMUL)?\.md\b", "EXPERIMENTS.md"),
    (r"`(registers|pipelined|fitted|shifted)`", "the variant's name in kernels/variants.def"),
]
RETIRED = [(re.compile(pattern), instead) for pattern, instead in RETIRED]

# File names, without their folder.
NAMES = re.compile(r"(test_|bench_)?(slabs?|door|patience|carrier|peer|solo|survey|cuts?|deal|coming"
                   r"|offers?|menu|ways?|walk|turn|join|feed|forms?|\w+_forms?|yardstick\w*|\w+_yardstick|reckon\w*|lanes)"
                   r"\.(c|h|cu|inc|py)|HUNT\w*\.md")


def retired(line):
    if not ALIAS.search(line):
        for pattern, instead in RETIRED:
            for found in pattern.finditer(line):
                yield found.group(), instead


def complaints(tree, path):
    if NAMES.fullmatch(path.rpartition("/")[2]):
        yield f"{path}: the file has a retired name"
    if path.endswith((".json", ".svg")):
        return
    for number, line in tree.lines(path):
        for word, instead in retired(line):
            yield f"{path}:{number}: {word!r} is retired: {instead}"


def check(tree):
    for path in tree.paths:
        if path not in EXEMPT:
            yield from complaints(tree, path)


PLANTED = [
    ({"main.c": "int gm_cut_rows;\n"}, "'gm_cut_rows' is retired: tile config"),
    ({"a.md": "times are reckoned\n"}, "'reckoned' is retired: estimate"),
    ({"a.md": "the Yardstick of all\n"}, "is retired: baseline"),
    ({"a.c": "double PATIENCE_NS;\n"}, "is retired: time-out"),
    ({"a.c": "struct gm_slabs *slabs;\n"}, "'slabs' is retired: buffer"),
    ({"a.c": "/* read as it lies */\n"}, "is retired: in its stored order"),
    ({"kernels/a.md": "see HUNT_MATMUL.md\n"}, "is retired: EXPERIMENTS.md"),
    ({"a.md": "`fitted` takes less\n"}, "is retired: the variant's name"),
    ({"a.c": "gm_block_get(x);\n"}, "'gm_block_get' is retired: memory quota"),
    ({"a.sh": "gemmd --lanes 2\n"}, "'--lanes' is retired: stream"),
    ({"a.c": "GM_WAY_TURNED\n"}, "is retired: load mode"),
    ({"src/door.c": ""}, "src/door.c: the file has a retired name"),
    ({"tests/test_forms.py": ""}, "tests/test_forms.py: the file has a retired name"),
    ({"HUNT.md": ""}, "HUNT.md: the file has a retired name"),
]
CLEAN = [
    {"a.c": "/* a share of the time; the walk is short; a block of rows; he lay in wait */ gm_sched_drain();\n",
     "b.c": '{"yardstick", x}, /* alias until 0.3 */\n', "CHANGELOG.md": "`yardstick`, `fitted`\n",
     "c.json": '{"yardstick": 1}\n', "d.c": "int gm_blocks_of_rows, folder, joiner;\n"},
]
lint.main(globals())
