# Completion of gemmctl for fish. Kernels and devices are those of the daemon that would be asked.

# __gemmctl_ask kernels|devices COLUMN: of that table, without its title
function __gemmctl_ask
    gemmctl $argv[1] --max-time 1s 2>/dev/null |
        awk -v column=$argv[2] 'NR > 1 { print $column }' | sort -u
end

set -l commands transpose matmul add flip eval put get list delete compare explain choose kernels devices stats bench top key

complete -c gemmctl -n "not __fish_seen_subcommand_from $commands" -f -a "$commands"
complete -c gemmctl -n '__fish_seen_subcommand_from compare bench' -a 'transpose matmul add flip'
complete -c gemmctl -n '__fish_seen_subcommand_from choose' -f -a 'transpose matmul add flip'
complete -c gemmctl -n '__fish_seen_subcommand_from key' -f -a 'new list revoke'
complete -c gemmctl -n '__fish_seen_subcommand_from explain kernels' -a 'transpose matmul add flip copy'

complete -c gemmctl -s u -l url -x -d 'where gemmd is'
complete -c gemmctl -l unix-socket -r -d 'connect to this socket'
complete -c gemmctl -l key-file -r -d 'the key is in this file'
complete -c gemmctl -l ca -r -d 'trust these certificates'
complete -c gemmctl -l proxy -x -d 'through this HTTP proxy'
complete -c gemmctl -l connect-timeout -x -d 'time to connect'
complete -c gemmctl -s m -l max-time -x -d 'time for a request'
complete -c gemmctl -l retry -x -d 'send it again for so long'
complete -c gemmctl -s o -l output -r -d 'the result goes there'
complete -c gemmctl -s f -l from -x -a 'npy csv json raw' -d 'format of the operands'
complete -c gemmctl -s t -l to -x -a 'npy csv json raw text svg' -d 'format of the result'
complete -c gemmctl -s k -l kernel -x -a '(__gemmctl_ask kernels 2)' -d 'a variant'
complete -c gemmctl -s d -l device -x -a '(__gemmctl_ask devices 1)' -d 'a device'
complete -c gemmctl -l dtype -x -d 'how text and raw elements are read' \
    -a 'f16 bf16 f32 f64 i32 i64 bool i8 u8 i16 u16 u32 u64 c64 c128 v1 v2 v4 v8 v16'
complete -c gemmctl -s s -l shape -x -d 'shape of raw elements'
complete -c gemmctl -l shape-a -x -d 'shape of a'
complete -c gemmctl -l shape-b -x -d 'shape of b'
complete -c gemmctl -l shape-c -x -d 'shape of c'
complete -c gemmctl -l transa -d 'multiply with the transpose of a'
complete -c gemmctl -l transb -d 'multiply with the transpose of b'
complete -c gemmctl -l alpha -x -d 'factor of the product'
complete -c gemmctl -l beta -x -d 'factor of c'
complete -c gemmctl -l precision -x -a 'fp32 ieee tf32 bf16' -d 'of a product'
complete -c gemmctl -l repeat -x -d 'run the kernel so often'
complete -c gemmctl -l timeout-ms -x -d 'the daemon gives up after so long'
complete -c gemmctl -l header -x -a 'true false' -d 'the first line of CSV is a header'
complete -c gemmctl -l nonfinite -x -a 'error null' -d 'NaN and infinity in JSON'
complete -c gemmctl -l gpu -x -d 'whose limits explain and choose assume'
complete -c gemmctl -s p -l param -x -d 'any other parameter'
complete -c gemmctl -s c -l concurrency -x -d 'requests at a time'
complete -c gemmctl -s n -l requests -x -d 'so many requests, or looks'
complete -c gemmctl -l duration -x -d 'for so long'
complete -c gemmctl -s r -l rate -x -d 'requests a second, in an open loop'
complete -c gemmctl -s i -l interval -x -d 'between two looks'
complete -c gemmctl -l keep -x -d 'the daemon keeps the result under this name'
complete -c gemmctl -l ttl -x -d 'put, --keep: for so many seconds'
complete -c gemmctl -l share -x -d 'put, --keep: these keys may read it'
complete -c gemmctl -l rows -x -d 'get: as 0:100'
complete -c gemmctl -l cols -x -d 'get: the same of columns'
complete -c gemmctl -l keys -r -d 'the keys file'
complete -c gemmctl -l roles -x -a 'use read admin use,read' -d 'of a new key'
complete -c gemmctl -l quota -x -d 'of a new key'
complete -c gemmctl -s j -l json -d 'say everything as JSON'
complete -c gemmctl -s q -l quiet -d 'no progress, no summary'
complete -c gemmctl -s v -l verbose -d 'say what ran and how long'
complete -c gemmctl -l color -x -a 'auto always never' -d 'when to show colours'
complete -c gemmctl -s h -l help -d 'print the options'
complete -c gemmctl -s V -l version -d 'print the version'
