#!/usr/bin/env bash
# stalls.sh - what Nsight Compute sees of each variant at the sizes of its times: the reasons for
# stalls, hit rates of the caches, registers, instructions. COUNTERS.md and the words of /v1/explain
# are held against it, beside requests, sectors and wavefronts. It takes a minute or two on an H200.
#
#   tests/gpu/stalls.sh PROFILE_GPU OUT      the program of that name; a folder for the results
#
# OUT/rows.csv: a line for each kernel, in the order of OUT/rows.txt, which has the runs.
# tests/gpu/counters.py --rows takes both.
set -euo pipefail

program=${1:?profile_gpu, as standalone.sh builds it} out=${2:?a folder for the results}
load=l1tex__t_sectors_pipe_lsu_mem_global_op_ld read=lts__t_sectors_srcunit_tex_op_read
metrics=gpu__time_duration.sum,launch__registers_per_thread,launch__waves_per_multiprocessor
metrics+=,sm__maximum_warps_per_active_cycle_pct,sm__warps_active.avg.pct_of_peak_sustained_active
metrics+=,smsp__inst_executed.sum,sm__inst_issued.avg.pct_of_peak_sustained_active
metrics+=,smsp__inst_executed_pipe_fma.sum,smsp__inst_executed_pipe_lsu.sum,smsp__inst_executed_pipe_alu.sum
metrics+=,l1tex__data_pipe_lsu_wavefronts.sum,l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed
metrics+=,${load}gsts_cache_access.sum,${load}gsts_cache_bypass.sum,l1tex__t_sector_hit_rate.pct
metrics+=,$load.sum,${load}_lookup_hit.sum,${load}_lookup_miss.sum
metrics+=,$read.sum,${read}_lookup_hit.sum,${read}_lookup_miss.sum,lts__t_sector_hit_rate.pct
metrics+=,lts__t_sectors_srcunit_tex_op_write.sum,dram__bytes_read.sum,dram__bytes_write.sum
metrics+=,dram__throughput.avg.pct_of_peak_sustained_elapsed
for reason in barrier branch_resolving dispatch_stall drain imc_miss lg_throttle long_scoreboard \
    math_pipe_throttle membar mio_throttle misc no_instruction not_selected selected short_scoreboard \
    sleeping tex_throttle wait; do
    metrics+=,smsp__average_warps_issue_stalled_${reason}_per_issue_active.ratio
done

mkdir -p "$out"
# Names differ from one generation of GPUs to the next: those that this one does not have are left out.
ncu --query-metrics >"$out/metrics.txt"
wanted=
for metric in ${metrics//,/ }; do
    case $metric in
    launch__* | sm__maximum_warps*) wanted+=,$metric ;;
    *) ! grep -q "^${metric%%.*} " "$out/metrics.txt" || wanted+=,$metric ;;
    esac
done
metrics=${wanted#,}
timeout 200 ncu --csv --page raw --clock-control none --log-file "$out/rows.csv" --metrics "$metrics" \
    "$program" --rows >"$out/rows.txt"
echo "$(grep -vc '^==' "$out/rows.txt") runs in $out/rows.csv"
