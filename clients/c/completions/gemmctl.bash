# Completion of gemmctl for bash. Kernels and devices are those of the daemon that would be asked.

# _gemmctl_ask kernels|devices COLUMN: of that table, without its title
_gemmctl_ask() {
    gemmctl "$1" --max-time 1s 2>/dev/null | awk -v column="$2" 'NR > 1 { print $column }' | sort -u
}

_gemmctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i command=
    local commands='transpose matmul add flip eval put get list delete compare explain choose kernels devices stats bench top key'
    local options='--url --unix-socket --key-file --ca --proxy --connect-timeout --max-time --retry --output
        --from --to --kernel --device --dtype --shape --shape-a --shape-b --shape-c --transa --transb
        --alpha --beta --precision --repeat --timeout-ms --keep --ttl --share --rows --cols --header --nonfinite --gpu --param
        --concurrency --requests --duration --rate --interval --keys --roles --quota --json --quiet --verbose
        --color --help --version'
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ " $commands " == *" ${COMP_WORDS[i]} "* ]] && command=${COMP_WORDS[i]} && break
    done
    local words=
    case $before in
    -k | --kernel) words="auto $(_gemmctl_ask kernels 2)" ;;
    -d | --device) words=$(_gemmctl_ask devices 1) ;;
    -f | --from) words='npy csv json raw' ;;
    -t | --to) words='npy csv json raw text svg' ;;
    --dtype) words='f16 bf16 f32 f64 i32 i64 bool i8 u8 i16 u16 u32 u64 c64 c128 v1 v2 v4 v8 v16' ;;
    --precision) words='fp32 ieee tf32 bf16' ;;
    --header) words='true false' ;;
    --nonfinite) words='error null' ;;
    --color) words='auto always never' ;;
    -o | --output | --key-file | --keys | --ca | --unix-socket) ;;
    compare | choose | bench) words='transpose matmul add flip' ;;
    --roles) words='use read admin use,read' ;;
    key) words='new list revoke' ;;
    explain | kernels) words='transpose matmul add flip copy' ;;
    *)
        if [[ $word == -* ]]; then
            words=$options
        elif [ -z "$command" ]; then
            words=$commands
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -F _gemmctl gemmctl
